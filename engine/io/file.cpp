// SPDX-License-Identifier: MIT
#include "engine/io/file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/error.h"

namespace masquerade {
namespace {

constexpr std::size_t piece = std::size_t(1) << 30;  // bytes per call of pread(), which reads at most 2 GiB

}  // namespace

FileReader::FileReader(const std::string& path)
    : path_((before_reading(path), path)),
      // without O_NONBLOCK, opening a pipe would wait for a writer
      file_(path, O_RDONLY | O_NONBLOCK) {
    struct stat about {};
    if (file_ < 0 || ::fstat(file_, &about) != 0) fail_to("open", path_);
    if (S_ISDIR(about.st_mode)) errno = EISDIR, fail_to("open", path_);
    if (!S_ISREG(about.st_mode))
        throw BadInput("cannot open ", path_, ": it is a pipe or a device, and a regular file is expected");
    size_ = std::uint64_t(about.st_size);
}

void FileReader::read(std::uint64_t offset, void* data, std::size_t bytes) const {
    char* at = static_cast<char*>(data);
    while (bytes > 0) {
        ssize_t done = ::pread(file_, at, std::min(bytes, piece), off_t(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail_to("read", path_);
        if (done == 0)
            throw BadInput("cannot read ", path_, ": it ends at byte ", offset, ", ", bytes, " more are expected");
        at += done;
        offset += std::uint64_t(done);
        bytes -= std::size_t(done);
    }
}

}  // namespace masquerade
