// SPDX-License-Identifier: MIT
// Finds libcublasLt on a Linux machine, and opens it. This is plain C++17 and does not need CUDA. The search goes in
// this order:
//     1. the environment variable MASQUERADE_CUBLAS, a file or its folder; if it is set, nothing else is searched
//     2. the folders that the dynamic loader searches: LD_LIBRARY_PATH, ldconfig
//     3. the folders of the CUDA Toolkit
//     4. Python packages, because PyTorch installs its own cuBLAS as one of them
#pragma once
#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

// The version of CUDA to search for, the root of the file system, and the environment variables. Tests set their own
// values.
struct CublasSearch {
    int major = 0;          // major version of CUDA; if it is 13, the file is libcublasLt.so.13
    std::string root = "";  // prefix of all searched folders, except those that environment variables name
    const char* (*variable)(const char* name) = [](const char* name) -> const char* { return std::getenv(name); };

    std::string file() const { return text("libcublasLt.so.", major); }
    std::string value_of(const char* name) const {
        const char* value = variable(name);
        return value ? value : "";
    }
};

// Returns the files to try, in order. If MASQUERADE_CUBLAS is set, the only entry is the file that it names, which may
// not exist. Otherwise the first entry is the bare file name, for which the loader searches its own folders, and all
// other entries are existing files. A file that several paths lead to is listed once.
inline std::vector<std::string> cublas_places(const CublasSearch& search) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (const std::string named = search.value_of("MASQUERADE_CUBLAS"); !named.empty())
        return {fs::is_directory(named, ignored) ? named + '/' + search.file() : named};

    std::vector<std::string> folders;  // patterns for glob()
    const std::string& root = search.root;
    // The third pattern is for /usr/local/cuda and, if `major` is 13, also for cuda-13 and cuda-13.*.
    for (const std::string& toolkit :
         {search.value_of("CUDA_HOME"), search.value_of("CUDA_PATH"),
          root + "/usr/local/cuda{" + text(",-", search.major, ",-", search.major, ".*") + "}", root + "/opt/cuda"})
        if (!toolkit.empty()) folders.push_back(toolkit + "/{lib64,lib,targets/x86_64-linux/lib}");
    // The folder of cuBLAS below the prefix of a Python installation, for example
    // /lib/python3.12/site-packages/nvidia/cu13/lib. Before CUDA 13, it was .../nvidia/cublas/lib.
    const std::string packages = text("/lib/python3*/{site,dist}-packages/nvidia/{cu", search.major, ",cublas}/lib");
    std::istringstream path(search.value_of("PATH"));
    for (std::string folder; std::getline(path, folder, ':');) {
        const fs::path python = fs::path(folder) / "python3";
        if (python.is_relative() || !fs::exists(python, ignored)) continue;
        folders.push_back(folder + "/.." + packages);
        folders.push_back((fs::canonical(python, ignored).parent_path() / "..").string() + packages);
    }
    for (const std::string& prefix :
         {search.value_of("VIRTUAL_ENV"), search.value_of("HOME") + "/.local", root + "/usr/local", root + "/usr"})
        if (!prefix.empty()) folders.push_back(prefix + packages);

    std::vector<std::string> places = {search.file()};
    std::set<fs::path> known;
    for (const std::string& folder : folders) {
        glob_t found{};
        if (glob((folder + '/' + search.file()).c_str(), GLOB_BRACE, nullptr, &found) == 0)
            for (std::size_t i = 0; i < found.gl_pathc; i++)
                if (known.insert(fs::weakly_canonical(found.gl_pathv[i], ignored)).second)
                    places.emplace_back(found.gl_pathv[i]);
        globfree(&found);
    }
    return places;
}

// The result of open_cublas(): the opened library and its file, or null and the reason in one line.
struct CublasOpened {
    void* library = nullptr;
    std::string place, reason;
};

inline CublasOpened open_cublas(const CublasSearch& search) {
    std::string failed;
    for (const std::string& place : cublas_places(search)) {
        if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return {library, place, ""};
        const char* why = dlerror();
        const std::string reason = why ? why : "no reason given";  // usually begins with the file name
        failed += reason.compare(0, place.size(), place) == 0 ? "; " + reason : "; " + place + ": " + reason;
    }
    return {nullptr, "",
            text("no ", search.file(), " can be opened", failed, "; install cuBLAS of CUDA ", search.major,
                 ", or name the file or its folder in MASQUERADE_CUBLAS")};
}

}  // namespace masquerade
