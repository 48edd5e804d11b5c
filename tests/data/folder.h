// SPDX-License-Identifier: MIT
// A temporary folder that goes with the test, and what files in it hold.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace masquerade {

struct TemporaryFolder {
    std::string path;
    TemporaryFolder() : path((std::filesystem::temp_directory_path() / "masqueradeXXXXXX").string()) {
        if (!mkdtemp(path.data())) std::abort();
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path); }

    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path + '/' + name, std::ios::binary) << bytes;
        return path + '/' + name;
    }
};

}  // namespace masquerade
