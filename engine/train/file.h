// SPDX-License-Identifier: MIT
// Files that must not be lost: every failure of the disk is a BadInput that names the path and the system's
// reason, and what is reported as written is on the disk.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "input/input.h"

namespace masquerade {

// Writes a new file. One that is not finished is removed: half a file is never left behind.
class FileWriter {
  public:
    explicit FileWriter(const std::string& path);
    FileWriter(const FileWriter&) = delete;
    ~FileWriter();
    void write(const void* data, std::size_t bytes);
    void finish();  // flushed to the disk and closed

  private:
    std::string path_;
    int file_;
};

// Reads at any place of a file; a folder, a pipe or an unreadable file is refused when it is opened.
class FileReader {
  public:
    explicit FileReader(const std::string& path);
    FileReader(const FileReader&) = delete;
    ~FileReader();
    const std::string& path() const { return path_; }
    std::uint64_t size() const { return size_; }
    void read(std::uint64_t offset, void* data, std::size_t bytes) const;

  private:
    std::string path_;
    int file_;
    std::uint64_t size_ = 0;
};

inline std::string read_file(const std::string& path, std::size_t largest = largest_text) {
    return read_input<BadInput>(path, largest);
}
void write_file(const std::string& path, const std::string& bytes);
// Writes beside the file and renames: a reader, or a crash, finds the old file or the new one, never a part.
void replace_file(const std::string& path, const std::string& bytes);

template <class Json = nlohmann::json>
Json read_json(const std::string& path) {
    return parse_input<BadInput, Json>(read_file(path), path);
}

// Renames and new names in a folder are on the disk only after this; so is a file's content.
void sync_to_disk(const std::string& path);

// BadInput("cannot WHAT PATH: No space left on device"), from errno.
[[noreturn]] void fail_to(const char* what, const std::string& path);

}  // namespace masquerade
