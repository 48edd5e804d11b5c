// SPDX-License-Identifier: MIT
// A file that a program writes is none of those that it reads.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

// The inputs of a command: an option and its file, or its folder with all that is in it. An empty path was not given.
using FilesRead = std::vector<std::pair<std::string, std::string>>;

// BadUsage where `path`, of this option, is one of the inputs, standard input or standard output, also through a link.
inline void expect_no_input(const std::string& option, const std::string& path, const FilesRead& inputs) {
    namespace fs = std::filesystem;
    struct stat out, in;
    if (path.empty() || ::stat(path.c_str(), &out) != 0 || !S_ISREG(out.st_mode)) return;
    auto refuse_same = [&](const std::string& name) {
        if (in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            throw BadUsage(text(option, " ", path, " is a file of ", name,
                                " as well, and would be lost: give ", option, " another file"));
    };
    for (const auto& [name, input] : inputs) {
        if (::stat(input.c_str(), &in) == 0) refuse_same(name);
        std::error_code none;
        for (fs::recursive_directory_iterator at(input, none), end; !none && at != end; at.increment(none))
            if (::stat(at->path().c_str(), &in) == 0) refuse_same(name);
    }
    if (::fstat(STDIN_FILENO, &in) == 0) refuse_same("standard input");
    if (::fstat(STDOUT_FILENO, &in) == 0) refuse_same("standard output");
}

}  // namespace masquerade
