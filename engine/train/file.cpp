// SPDX-License-Identifier: MIT
#include "engine/train/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"

namespace masquerade {
namespace {

constexpr std::size_t piece = std::size_t(1) << 30;  // one call moves at most 2 GiB

// Pipes and some devices cannot be flushed and say EINVAL: nothing to worry about.
bool flush(int file) { return ::fsync(file) == 0 || errno == EINVAL; }

}  // namespace

void fail_to(const char* what, const std::string& path) {
    throw BadInput(text("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

FileWriter::FileWriter(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail_to("write", path_);
}

FileWriter::~FileWriter() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(path_.c_str());
}

void FileWriter::write(const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
        ssize_t done = ::write(file_, at, std::min(bytes, piece));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail_to("write", path_);
        at += done;
        bytes -= std::size_t(done);
    }
}

void FileWriter::finish() {
    if (!flush(file_)) fail_to("write", path_);
    int file = std::exchange(file_, -1);
    if (::close(file) == 0) return;
    int reason = errno;
    ::unlink(path_.c_str());
    errno = reason;
    fail_to("write", path_);
}

FileReader::FileReader(const std::string& path)
    : path_(path),
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // never waits for a pipe's other end
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
    throw BadInput(text("cannot open ", path_, ": it is a pipe or a device, and a regular file is expected"));
}

FileReader::~FileReader() { ::close(file_); }

void FileReader::read(std::uint64_t offset, void* data, std::size_t bytes) const {
    char* at = static_cast<char*>(data);
    while (bytes > 0) {
        ssize_t done = ::pread(file_, at, std::min(bytes, piece), off_t(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail_to("read", path_);
        if (done == 0)
            throw BadInput(
                text("cannot read ", path_, ": it ends at byte ", offset, ", ", bytes, " more are expected"));
        at += done;
        offset += std::uint64_t(done);
        bytes -= std::size_t(done);
    }
}

void write_file(const std::string& path, const std::string& bytes) {
    FileWriter file(path);
    file.write(bytes.data(), bytes.size());
    file.finish();
}

void replace_file(const std::string& path, const std::string& bytes) {
    std::filesystem::path place(path);
    std::string fresh = (place.parent_path() / (".new-" + place.filename().string())).string();
    write_file(fresh, bytes);
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
        int reason = errno;
        ::unlink(fresh.c_str());
        errno = reason;
        fail_to("write", path);
    }
    sync_to_disk(place.has_parent_path() ? place.parent_path().string() : ".");
}

void sync_to_disk(const std::string& path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_to("open", path);
    bool done = flush(file);
    int reason = errno;
    ::close(file);
    errno = reason;
    if (!done) fail_to("write", path);
}

}  // namespace masquerade
