// SPDX-License-Identifier: MIT
// Writes files and folders. If a write fails, BadInput is thrown; its message names the path and the system's reason.
// replace_file() and fill_folder() write so that a file appears complete or not at all.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace masquerade {

// Writes a new file, or overwrites an old one. If finish() fails or is never called, the file is removed, unless it is
// a device or a pipe.
class FileWriter {
  public:
    explicit FileWriter(const std::string& path);
    FileWriter(const FileWriter&) = delete;
    ~FileWriter();
    void write(const void* data, std::size_t bytes);
    void finish();  // flushes the data to disk and closes the file

  private:
    void remove() const;  // removes a regular file; does not change errno

    std::string path_;
    int file_;
    bool regular_ = false;
};

void write_file(const std::string& path, const std::string& bytes);
// Writes to an open file. Returns false if this fails, and leaves the reason in errno.
bool write_all(int file, const void* data, std::size_t bytes);

// A temporary folder for unfinished files, named ".new-" plus a random suffix. Only the user who runs the program can
// enter it, so nobody else can create a link or a file with a name that is about to be written. The destructor
// removes the folder with everything in it.
class PrivateFolder {
  public:
    // Creates the folder inside the folder `in`, or in the current folder if `in` is empty. If this fails, throws
    // BadInput with the message that `path` cannot be written.
    PrivateFolder(const std::string& in, const std::string& path);
    PrivateFolder(const PrivateFolder&) = delete;
    ~PrivateFolder();
    std::string file(const std::string& name) const { return folder_ + "/" + name; }

  private:
    std::string folder_;
};

// Writes a new file in a temporary folder next to `path`, flushes it to disk, and renames it to `path`. A reader
// finds the complete old or the complete new file, even after a crash. If `path` is a symbolic link to a file, this
// file is replaced; a link that points to nothing is replaced itself. If `path` is a device or a pipe, the bytes are
// written to it directly.
void replace_file(const std::string& path, const std::string& bytes);
// Like replace_file(path, bytes), but calls write(place) to write the new file, where `place` is the path of the
// temporary file. Error messages name `path`, not `place`.
void replace_file(const std::string& path, const std::function<void(const std::string& place)>& write);

// Creates a folder and its missing parents, and flushes the name of each new folder to disk. Returns false if the
// folder exists already.
bool make_folder(const std::string& path);
// Adds several files to `folder`, which is created if it does not exist. write(place) writes the files into a
// temporary folder with the path `place`. Then the files are moved into `folder`, config.json last, so that a new
// folder with a config.json is complete. If write() throws an exception, none of the files remain.
void fill_folder(const std::string& folder, const std::function<void(const std::string& place)>& write);
// Creates a folder with several files. write(place) writes the files into a temporary folder with the path `place`,
// which is then renamed to `path`, so the folder appears with all files or not at all. Throws BadInput if `path`
// exists.
void write_new_folder(const std::string& path, const std::function<void(const std::string& place)>& write);
// Calls write(fresh), where `fresh` is a temporary path that the user should not see. If write() throws an exception
// whose message contains `fresh`, throws BadInput with the same message, in which `path` replaces `fresh`.
void write_as(const std::string& path, const std::string& fresh, const std::function<void(const std::string&)>& write);

// Removes a file or a folder with its contents. Errors are ignored.
void remove_all(const std::string& path);

// Flushes the content of a file, or the list of names in a folder, to disk. After a file is created or renamed, the new
// name survives a crash only if the folder of the file has been flushed.
void sync_to_disk(const std::string& path);

// Throws BadInput with a message such as "cannot write model.bin: No space left on device". `what` is the verb, and
// the reason comes from errno.
[[noreturn]] void fail_to(const char* what, const std::string& path);

}  // namespace masquerade
