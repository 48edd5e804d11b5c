// SPDX-License-Identifier: MIT
#include "engine/train/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace masquerade {
namespace {

constexpr std::size_t piece = std::size_t(1) << 30;  // one call moves at most 2 GiB

}  // namespace

FileReader::FileReader(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) fail_to("open", path_);
    struct stat about;
    bool known = ::fstat(file_, &about) == 0;
    if (!known || S_ISDIR(about.st_mode)) {
        if (known) errno = EISDIR;
        int reason = errno;
        ::close(file_);
        errno = reason;
        fail_to("open", path_);
    }
    size_ = std::uint64_t(about.st_size);
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

std::string read_file(const std::string& path) {
    FileReader file(path);
    std::string bytes(std::size_t(file.size()), '\0');
    file.read(0, bytes.data(), bytes.size());
    return bytes;
}

nlohmann::json parse_json(const std::string& bytes, const std::string& path) {
    if (bytes.find_first_not_of(" \t\r\n") == bytes.npos)
        throw BadInput(text(path, " is empty; JSON is expected"));
    try {
        return nlohmann::json::parse(bytes);
    } catch (const nlohmann::json::parse_error& e) {
        throw BadInput(text(path, " is not JSON",
                            e.byte > bytes.size() ? ": it ends in the middle, at byte " : ": byte ",
                            std::min(e.byte, bytes.size()), e.byte > bytes.size() ? "" : " cannot be read"));
    } catch (const nlohmann::json::exception& e) {
        throw BadInput(text(path, " is not JSON: ", e.what()));
    }
}

nlohmann::json read_json(const std::string& path) { return parse_json(read_file(path), path); }

}  // namespace masquerade
