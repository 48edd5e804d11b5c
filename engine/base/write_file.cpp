// SPDX-License-Identifier: MIT
#include "engine/base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "input/open_file.h"

namespace masquerade {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t piece = std::size_t(1) << 30;  // most bytes per call of ::write(), which accepts about 2 GiB

// Flushes the file to disk, and returns false if this fails. Pipes and some devices cannot be flushed and report
// EINVAL, which does not count as a failure.
bool flush(int file) { return ::fsync(file) == 0 || errno == EINVAL; }

}  // namespace

void fail_to(const char* what, const std::string& path) {
    throw BadInput("cannot ", what, " ", path, ": ", std::strerror(errno));
}

FileWriter::FileWriter(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail_to("write", path_);
    struct stat about;
    regular_ = ::fstat(file_, &about) == 0 && S_ISREG(about.st_mode);
}

FileWriter::~FileWriter() {
    if (file_ < 0) return;
    ::close(file_);
    remove();
}

void FileWriter::remove() const {
    const int reason = errno;
    if (regular_) ::unlink(path_.c_str());
    errno = reason;
}

bool write_all(int file, const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
        ssize_t done = ::write(file, at, std::min(bytes, piece));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        at += done;
        bytes -= done;
    }
    return true;
}

void FileWriter::write(const void* data, std::size_t bytes) {
    if (!write_all(file_, data, bytes)) fail_to("write", path_);
}

void FileWriter::finish() {
    if (!flush(file_)) fail_to("write", path_);
    if (::close(std::exchange(file_, -1)) == 0) return;
    remove();
    fail_to("write", path_);
}

void write_file(const std::string& path, const std::string& bytes) {
    FileWriter file(path);
    file.write(bytes.data(), bytes.size());
    file.finish();
}

void replace_file(const std::string& path, const std::string& bytes) {
    replace_file(path, [&](const std::string& place) { write_file(place, bytes); });
}

PrivateFolder::PrivateFolder(const std::string& in, const std::string& path)
    : folder_((in.empty() ? "." : in) + "/.new-XXXXXX") {
    if (!::mkdtemp(folder_.data())) fail_to("write", path);
}

PrivateFolder::~PrivateFolder() { remove_all(folder_); }

void write_as(const std::string& path, const std::string& fresh, const std::function<void(const std::string&)>& write) {
    try {
        write(fresh);
    } catch (const std::exception& e) {
        std::string message = e.what();
        const std::size_t at = message.find(fresh);
        if (at == message.npos) throw;
        throw BadInput(message.replace(at, fresh.size(), path));
    }
}

void replace_file(const std::string& path, const std::function<void(const std::string&)>& write) {
    struct stat old;
    const bool there = ::stat(path.c_str(), &old) == 0;
    if (there && !S_ISREG(old.st_mode)) return write(path);
    const fs::path place = there && fs::is_symlink(path) ? fs::canonical(path) : fs::path(path);
    const PrivateFolder beside(place.parent_path().string(), path);
    const std::string fresh = beside.file("file");
    write_as(path, fresh, write);
    if (there) ::chmod(fresh.c_str(), old.st_mode & 07777);
    sync_to_disk(fresh);
    if (::rename(fresh.c_str(), place.c_str()) != 0) fail_to("write", path);
    sync_to_disk(place.has_parent_path() ? place.parent_path().string() : ".");
}

bool make_folder(const std::string& path) {
    const fs::path folder = path;
    std::error_code failed;
    if (fs::is_directory(folder, failed)) return false;
    const fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
    if (!above.empty() && above != folder) make_folder(above.string());
    if (::mkdir(path.c_str(), 0777) != 0) {
        if (errno == EEXIST && fs::is_directory(folder, failed)) return false;  // another program has just made it
        fail_to("make the folder", path);
    }
    sync_to_disk(above.empty() ? "." : above.string());
    return true;
}

void fill_folder(const std::string& folder, const std::function<void(const std::string&)>& write) {
    struct Unfilled {
        std::string path;
        ~Unfilled() {
            if (!path.empty()) remove_all(path);
        }
    } unfilled{make_folder(folder) ? folder : ""};
    const PrivateFolder inside(folder, folder);
    const fs::path fresh = inside.file("files");
    if (::mkdir(fresh.c_str(), 0777) != 0) fail_to("write", folder);
    write_as(folder, fresh.string(), write);
    std::vector<fs::path> names;
    for (const fs::directory_entry& one : fs::directory_iterator(fresh)) names.push_back(one.path().filename());
    std::stable_partition(names.begin(), names.end(), [](const fs::path& name) { return name != "config.json"; });
    for (const fs::path& name : names) {
        const fs::path place = folder / name;
        if (::rename((fresh / name).c_str(), place.c_str()) != 0) fail_to("write", place.string());
    }
    sync_to_disk(folder);
    unfilled.path.clear();
}

void write_new_folder(const std::string& path, const std::function<void(const std::string&)>& write) {
    const fs::path place = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
    const std::string above = place.has_parent_path() ? place.parent_path().string() : ".";
    make_folder(above);
    const PrivateFolder beside(above, path);
    const std::string fresh = beside.file("files");
    if (::mkdir(fresh.c_str(), 0777) != 0) fail_to("write", path);
    write_as(path, fresh, write);
    sync_to_disk(fresh);
    if (fs::exists(place)) throw BadInput(path, " is there already; remove it, or name another folder");
    if (::rename(fresh.c_str(), place.c_str()) != 0) fail_to("write", path);
    sync_to_disk(above);
}

void remove_all(const std::string& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

void sync_to_disk(const std::string& path) {
    const OpenFile file(path, O_RDONLY);
    if (file < 0) fail_to("open", path);
    if (!flush(file)) fail_to("write", path);
}

}  // namespace masquerade
