// SPDX-License-Identifier: MIT
#include "engine/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) fail_to("open", path_);
    struct stat about {};
    const bool known = ::fstat(file_, &about) == 0;
    if (known && S_ISREG(about.st_mode)) {
        size_ = std::uint64_t(about.st_size);
        return;
    }
    const int reason = known ? EISDIR : errno;
    ::close(file_);
    errno = reason;
    if (!known || S_ISDIR(about.st_mode)) fail_to("open", path_);
    throw BadInput("cannot open ", path_, ": it is a pipe or a device, and a regular file is expected");
}

FileReader::~FileReader() { ::close(file_); }

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
