// SPDX-License-Identifier: MIT
// Reads files. Every failure is a BadInput that names the path and the reason. Files are written by
// engine/base/write_file.h.
#pragma once
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/base/write_file.h"
#include "input/input.h"
#include "input/open_file.h"

namespace masquerade {

// Reads any part of a file. The constructor throws BadInput for a folder, a pipe, a device, and a file that cannot be
// opened.
class FileReader {
  public:
    explicit FileReader(const std::string& path);
    const std::string& path() const { return path_; }
    std::uint64_t size() const { return size_; }
    void read(std::uint64_t offset, void* data, std::size_t bytes) const;

  private:
    std::string path_;
    OpenFile file_;
    std::uint64_t size_ = 0;
};

inline std::string read_file(const std::string& path, std::size_t largest = largest_text) {
    return read_input<BadInput>(path, largest);
}

template <class Json = nlohmann::json>
Json read_json(const std::string& path) {
    return parse_input<BadInput, Json>(read_file(path), path);
}

}  // namespace masquerade
