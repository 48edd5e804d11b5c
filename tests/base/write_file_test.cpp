// SPDX-License-Identifier: MIT
#include "engine/base/write_file.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/train/files.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
// While noting_flushes is true, fsync() appends the paths of the files and folders that are flushed to the disk to
// `flushed`.
bool noting_flushes = false;
std::vector<std::string> flushed;

std::ptrdiff_t files_in(const std::string& folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

}  // namespace

// Replaces the library's fsync() in the whole test program.
extern "C" int fsync(int file) {
    if (noting_flushes) flushed.push_back(fs::read_symlink("/proc/self/fd/" + std::to_string(file)).string());
    return int(::syscall(SYS_fsync, file));
}

TEST_CASE("write file: what was there stays until all of the new file is written") {
    TemporaryFolder folder;
    const std::string path = folder.write("a", "old");
    ::chmod(path.c_str(), 0640);
    const std::string says = message_of<BadInput>([&] {
        replace_file(path, [&](const std::string& place) {
            write_file(place, "half");
            CHECK(bytes_of(path) == "old");
            throw BadInput("cannot write " + place + ": No space left on device");
        });
    });
    CHECK(says == "cannot write " + path + ": No space left on device");
    CHECK(bytes_of(path) == "old");
    CHECK(files_in(folder.path) == 1);
    replace_file(path, std::string("new"));
    CHECK(bytes_of(path) == "new");
    CHECK(files_in(folder.path) == 1);
    struct stat about {};
    CHECK(::stat(path.c_str(), &about) == 0);
    CHECK((about.st_mode & 07777) == 0640);
    CHECK_THROWS_AS(replace_file(folder.file("none/a"), std::string("x")), BadInput);
    CHECK_SAYS(message_of<BadInput>([&] { replace_file(folder.path, std::string("x")); }), "Is a directory");
}

TEST_CASE("write file: links, devices and pipes stay what they are") {
    TemporaryFolder folder;
    const std::string path = folder.write("a", "old"), link = folder.file("link");
    fs::create_symlink("a", link);
    replace_file(link, std::string("new"));
    CHECK(fs::is_symlink(link));
    CHECK(bytes_of(path) == "new");

    fs::create_symlink(folder.write("other", "other"),
                       folder.file(".new-a"));  // a crash or another user has left this link
    replace_file(path, std::string("newer"));
    CHECK(bytes_of(path) == "newer");
    CHECK(bytes_of(folder.file("other")) == "other");

    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::string read;
    std::thread reader([&] { read = bytes_of(pipe); });
    replace_file(pipe, std::string("through the pipe"));
    reader.join();
    CHECK(read == "through the pipe");
    CHECK(fs::is_fifo(pipe));

    if (!has_full_disk()) return;
    const std::string full = folder.file("full");
    fs::create_symlink("/dev/full", full);
    CHECK_SAYS(message_of<BadInput>([&] { replace_file(full, std::string("x")); }), "No space left on device");
    CHECK(fs::is_character_file(full));
}

TEST_CASE("write file: files that belong together all appear or none") {
    TemporaryFolder folder;
    const std::string model = folder.file("parent/model");
    const std::string says = message_of<BadInput>([&] {
        fill_folder(model, [&](const std::string& place) {
            write_file(place + "/config.json", "{}");
            write_file(place + "/none/weights", "");
        });
    });
    CHECK(says == "cannot write " + model + "/none/weights: No such file or directory");
    CHECK(!fs::exists(model));
    fs::create_directory(model);
    write_file(model + "/notes", "");
    fill_folder(model, [&](const std::string& place) {
        write_file(place + "/config.json", "{}");
        write_file(place + "/weights", "");
        CHECK(!fs::exists(model + "/config.json"));
    });
    CHECK(bytes_of(model + "/config.json") == "{}");
    CHECK(files_in(model) == 3);
}

TEST_CASE("write file: what is not finished lies where nobody else can put anything") {
    TemporaryFolder folder;
    ::chmod(folder.path.c_str(), 0777);
    std::vector<std::string> places;
    const auto look_at = [&](const std::string& place) {
        const fs::path beside = fs::path(place).parent_path();
        struct stat about {};
        CHECK(::stat(beside.c_str(), &about) == 0);
        CHECK((about.st_mode & 077) == 0);
        CHECK(fs::equivalent(beside.parent_path(), folder.path));
        places.push_back(beside.filename().string());
    };
    // Names that another user might guess are taken.
    for (const char* taken : {".new-a/x", ".new-files/x"}) fs::create_directories(folder.file(taken));
    for (int round = 0; round < 2; round++) {
        replace_file(folder.file("a"), [&](const std::string& place) { look_at(place), write_file(place, "a"); });
        fill_folder(folder.path, [&](const std::string& place) { look_at(place), write_file(place + "/b", "b"); });
    }
    std::sort(places.begin(), places.end());
    CHECK(std::unique(places.begin(), places.end()) == places.end());
    CHECK(bytes_of(folder.file("a")) + bytes_of(folder.file("b")) == "ab");
    CHECK(files_in(folder.path) == 4);
    const std::string longest(255, 'n');
    replace_file(folder.file(longest), std::string("long"));
    CHECK(bytes_of(folder.file(longest)) == "long");
}

TEST_CASE("write file: a new folder is on the disk with those above it") {
    TemporaryFolder folder;
    noting_flushes = true, flushed.clear();
    CHECK(make_folder(folder.file("a/b/c")));
    CHECK(flushed == std::vector<std::string>{folder.path, folder.file("a"), folder.file("a/b")});
    flushed.clear();
    CHECK(!make_folder(folder.file("a/b")));
    CHECK(make_folder(folder.file("a/b/d/")));
    CHECK(flushed == std::vector<std::string>{folder.file("a/b")});
    noting_flushes = false;
    write_file(folder.file("file"), "");
    CHECK_SAYS(message_of<BadInput>([&] { make_folder(folder.file("file")); }),
               "cannot make the folder " + folder.file("file"));
    CHECK_SAYS(message_of<BadInput>([&] { make_folder(folder.file("file/in")); }), "cannot make the folder ");
}
