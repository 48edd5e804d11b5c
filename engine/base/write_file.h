// SPDX-License-Identifier: MIT
// Files that programs write: each appears whole or not at all, and every failure of the disk is a BadInput that names
// the path and the system's reason. What is reported as written is on the disk.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace masquerade {

// Writes a new file. One that is not finished is removed: half a file is never left behind. A device or a pipe stays.
class FileWriter {
  public:
    explicit FileWriter(const std::string& path);
    FileWriter(const FileWriter&) = delete;
    ~FileWriter();
    void write(const void* data, std::size_t bytes);
    void finish();  // flushed to the disk and closed

  private:
    void remove() const;  // errno stays

    std::string path_;
    int file_;
    bool regular_ = false;
};

void write_file(const std::string& path, const std::string& bytes);

// A folder for what is not finished, ".new-" and a random end, beside the place where it will be. Nobody else may enter
// it, so nobody puts a link or a file of their own under the name that is written next. It goes away with what is still
// in it.
class PrivateFolder {
  public:
    // It is made in the folder `in`; where that fails, the error is that `path` cannot be written.
    PrivateFolder(const std::string& in, const std::string& path);
    PrivateFolder(const PrivateFolder&) = delete;
    ~PrivateFolder();
    std::string file(const std::string& name) const { return folder_ + "/" + name; }

  private:
    std::string folder_;
};

// Writes beside the file and renames: a reader, or a crash, finds the old file or the new one, never a part. A link
// leads to the new file afterwards. A device or a pipe is written to as it is.
void replace_file(const std::string& path, const std::string& bytes);
// The same, where write(place) makes the file; errors name `path`, not the place beside it.
void replace_file(const std::string& path, const std::function<void(const std::string& place)>& write);

// Makes a folder with those above it, and flushes each folder that has got a new name. Returns whether it was not
// there.
bool make_folder(const std::string& path);
// Files that belong together: write(place) makes them in a folder inside `folder`, then they move up, config.json last.
// Where write fails, nothing is left of them.
void fill_folder(const std::string& folder, const std::function<void(const std::string& place)>& write);
// Calls write(fresh); what it says of a file in `fresh` is said of that file in `path`.
void write_as(const std::string& path, const std::string& fresh, const std::function<void(const std::string&)>& write);

// Renames and new names in a folder are on the disk only after this; so is a file's content.
void sync_to_disk(const std::string& path);

// BadInput("cannot WHAT PATH: No space left on device"), from errno.
[[noreturn]] void fail_to(const char* what, const std::string& path);

}  // namespace masquerade
