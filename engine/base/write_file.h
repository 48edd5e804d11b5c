// SPDX-License-Identifier: MIT
// Writing files. A file appears complete or not at all, and every failure is a BadInput that names the path and the
// system's reason. When a function returns, the data is on disk.
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
    void remove() const;  // keeps errno

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
// Like the above, but write(place) makes the file. Errors name `path`, not `place`.
void replace_file(const std::string& path, const std::function<void(const std::string& place)>& write);

// Makes a folder and its missing parents, and flushes each new name to disk. Returns false if the folder existed.
bool make_folder(const std::string& path);
// Adds files to `folder` together: write(place) makes them in a temporary folder inside, then they are moved up,
// config.json last. If write() fails, none of them remain.
void fill_folder(const std::string& folder, const std::function<void(const std::string& place)>& write);
// Calls write(fresh). If it throws a message that names `fresh`, the message names `path` instead.
void write_as(const std::string& path, const std::string& fresh, const std::function<void(const std::string&)>& write);

// Flushes a file's content, or the names in a folder: new and renamed files are on disk only after this call.
void sync_to_disk(const std::string& path);

// Throws BadInput("cannot WHAT PATH: No space left on device"), with the reason from errno.
[[noreturn]] void fail_to(const char* what, const std::string& path);

}  // namespace masquerade
