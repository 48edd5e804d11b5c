// SPDX-License-Identifier: MIT
// A temporary folder for a test. The destructor removes the folder with its contents.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "doctest/doctest.h"

namespace masquerade {

// Returns the folder for temporary folders: /dev/shm if it is writable and has 1 GiB of room, because there the many
// syncs of a run take no time; otherwise, the system's temporary folder on the disk.
inline std::filesystem::path place_for_folders() {
    std::error_code none;
    const bool memory =
        std::filesystem::space("/dev/shm", none).available > (1u << 30) && !none && access("/dev/shm", W_OK) == 0;
    return memory ? "/dev/shm" : std::filesystem::temp_directory_path();
}

struct TemporaryFolder {
    std::string path = (place_for_folders() / "masquerade-test-XXXXXX").string();

    TemporaryFolder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }

    std::string file(const std::string& name) const { return path + "/" + name; }

    // Writes a file with these bytes, and returns its path.
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }
};

// Whether the machine has /dev/full, a device without space. If not, prints that the test skips this part.
inline bool has_full_disk() {
    const bool there = std::filesystem::is_character_file("/dev/full");
    if (!there) MESSAGE("skipped: /dev/full is no character device, so no disk is full");
    return there;
}

}  // namespace masquerade
