// SPDX-License-Identifier: MIT
// Finds a library of NVIDIA's on a Linux machine, such as libcublasLt or libnccl, and opens it. This is plain C++17 and
// does not need CUDA. The search goes in this order:
//     1. an environment variable that names a file or its folder; if it is set, nothing else is searched
//     2. the folders that the dynamic loader searches: LD_LIBRARY_PATH, ldconfig
//     3. the folders of the CUDA Toolkit
//     4. Python packages, because PyTorch installs its own libraries as such packages
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

// The library to search for, the root of the file system, and the environment variables. Tests set their own root and
// variables. A pattern is one of glob().
struct LibrarySearch {
    std::string file;       // "libcublasLt.so.13"
    std::string product;    // its name for messages: "cuBLAS of CUDA 13"
    std::string named_by;   // the environment variable of step 1
    std::string toolkits;   // what may follow /usr/local/cuda in the name of a toolkit's folder, a pattern
    std::string package;    // the folder of the library in site-packages, a pattern: "nvidia/{cu13,cublas}/lib"
    std::string root = "";  // prefix of all searched folders, except those that environment variables name
    const char* (*variable)(const char* name) = [](const char* name) -> const char* { return std::getenv(name); };

    std::string value_of(const std::string& name) const {
        const char* value = variable(name.c_str());
        return value ? value : "";
    }
};

// `major` is the major version of CUDA. Before CUDA 13, the folder of cuBLAS in site-packages was nvidia/cublas/lib.
inline LibrarySearch cublas_search(int major) {
    return {text("libcublasLt.so.", major), text("cuBLAS of CUDA ", major), "MASQUERADE_CUBLAS",
            text("{,-", major, ",-", major, ".*}"), text("nvidia/{cu", major, ",cublas}/lib")};
}
inline LibrarySearch nccl_search() { return {"libnccl.so.2", "NCCL 2", "MASQUERADE_NCCL", "{,-*}", "nvidia/nccl/lib"}; }

// Returns the files to try, in order. If the environment variable is set, the only entry is the file that it names,
// which may not exist. Otherwise the first entry is the bare file name, for which the loader searches its own folders,
// and all other entries are existing files. A file that several paths lead to is listed once.
inline std::vector<std::string> places_of(const LibrarySearch& search) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (const std::string named = search.value_of(search.named_by); !named.empty())
        return {fs::is_directory(named, ignored) ? named + '/' + search.file : named};

    std::vector<std::string> folders;  // patterns
    const std::string& root = search.root;
    for (const std::string& toolkit : {search.value_of("CUDA_HOME"), search.value_of("CUDA_PATH"),
                                       root + "/usr/local/cuda" + search.toolkits, root + "/opt/cuda"})
        if (!toolkit.empty()) folders.push_back(toolkit + "/{lib64,lib,targets/x86_64-linux/lib}");
    // Below the prefix of a Python installation, for example /lib/python3.12/site-packages/nvidia/cu13/lib.
    const std::string packages = "/lib/python3*/{site,dist}-packages/" + search.package;
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

    std::vector<std::string> places = {search.file};
    std::set<fs::path> known;
    for (const std::string& folder : folders) {
        glob_t found{};
        if (glob((folder + '/' + search.file).c_str(), GLOB_BRACE, nullptr, &found) == 0)
            for (std::size_t i = 0; i < found.gl_pathc; i++)
                if (known.insert(fs::weakly_canonical(found.gl_pathv[i], ignored)).second)
                    places.emplace_back(found.gl_pathv[i]);
        globfree(&found);
    }
    return places;
}

// The result of open_first(): the opened library and its file, or null and the reason in one line.
struct OpenedLibrary {
    void* library = nullptr;
    std::string place, reason;
};

// Opens the first of places_of() that can be opened.
inline OpenedLibrary open_first(const LibrarySearch& search) {
    std::string failed;
    for (const std::string& place : places_of(search)) {
        if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return {library, place, ""};
        const char* why = dlerror();
        const std::string reason = why ? why : "no reason given";  // usually begins with the file name
        failed += reason.compare(0, place.size(), place) == 0 ? "; " + reason : "; " + place + ": " + reason;
    }
    return {nullptr, "",
            text("no ", search.file, " can be opened", failed, "; install ", search.product,
                 ", or name the file or its folder in ", search.named_by)};
}

}  // namespace masquerade
