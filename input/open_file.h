// SPDX-License-Identifier: MIT
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace masquerade {

// A file that is closed when the object is destroyed. Converts to the file descriptor; -1: no file is open, and if
// open(2) has failed, errno says why.
class OpenFile {
  public:
    OpenFile() = default;
    OpenFile(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC)) {}
    OpenFile(OpenFile&& other) noexcept { *this = std::move(other); }
    OpenFile& operator=(OpenFile&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    operator int() const { return descriptor_; }

  private:
    int descriptor_ = -1;
};

}  // namespace masquerade
