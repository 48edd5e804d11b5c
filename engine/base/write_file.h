// SPDX-License-Identifier: MIT
// Writes files and folders. A file appears complete or not at all. Every failure is a BadInput that names the path and
// the system's reason. When a function returns, the data is on disk.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace masquerade {

// Writes a new file. If finish() is not reached, the incomplete file is removed; a device or a pipe is not.
class FileWriter {
  public:
    explicit FileWriter(const std::string& path);
    FileWriter(const FileWriter&) = delete;
    ~FileWriter();
    void write(const void* data, std::size_t bytes);
    void finish();  // flushes to disk and closes

  private:
    void remove() const;  // does not change errno

    std::string path_;
    int file_;
    bool regular_ = false;
};

void write_file(const std::string& path, const std::string& bytes);

// A folder for unfinished files, named ".new-" plus a random suffix, next to their final place. Only this user can
// enter it, so nobody else can plant a link or a file under a name that is about to be written. The destructor removes
// the folder with everything in it.
class PrivateFolder {
  public:
    // Creates the folder inside `in`. On failure, the error says that `path` cannot be written.
    PrivateFolder(const std::string& in, const std::string& path);
    PrivateFolder(const PrivateFolder&) = delete;
    ~PrivateFolder();
    std::string file(const std::string& name) const { return folder_ + "/" + name; }

  private:
    std::string folder_;
};

// Writes a new file next to `path` and renames it: a reader, or a crash, finds the old or the new file, never a part.
// If `path` is a link, its target is replaced. A device or a pipe is written to directly.
void replace_file(const std::string& path, const std::string& bytes);
// Like the function above, but calls write(place) to write the new file. Errors name `path`, not `place`.
void replace_file(const std::string& path, const std::function<void(const std::string& place)>& write);

// Creates a folder and its missing parents, and flushes each new name to disk. Returns false if the folder existed.
bool make_folder(const std::string& path);
// Adds several files to `folder`: write(place) writes them into a temporary folder inside `folder`, then they are moved
// into `folder`, config.json last. If write() fails, none of the files remain.
void fill_folder(const std::string& folder, const std::function<void(const std::string& place)>& write);
// Calls write(fresh). If write() throws an exception whose message contains `fresh`, throws a BadInput whose message
// has `path` in its place.
void write_as(const std::string& path, const std::string& fresh, const std::function<void(const std::string&)>& write);

// Flushes the content of a file, or the names in a folder. After a file is created or renamed, its new name is on disk
// only when its folder has been flushed.
void sync_to_disk(const std::string& path);

// Throws BadInput("cannot WHAT PATH: No space left on device"), with the reason from errno.
[[noreturn]] void fail_to(const char* what, const std::string& path);

}  // namespace masquerade
