// SPDX-License-Identifier: MIT
// Where libcublasLt may lie on a Linux machine, and opening the first one that opens. Plain C++17: no CUDA is needed.
//     1. MASQUERADE_CUBLAS, a file or its folder, and then nothing else
//     2. where the loader looks by itself: LD_LIBRARY_PATH, ldconfig
//     3. the folders of the CUDA Toolkit
//     4. the packages of Python: PyTorch brings a cuBLAS of its own
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

// The facts that the search depends on; a test sets its own.
struct CublasSearch {
    int major = 0;          // of CUDA: libcublasLt.so.13
    std::string root = "";  // before every folder that is not named by a variable
    const char* (*variable)(const char* name) = [](const char* name) -> const char* { return std::getenv(name); };

    std::string file() const { return text("libcublasLt.so.", major); }
};

namespace detail {

// Whether a goes before b: numbers within names count as numbers, the larger one first: cuda-13.10, cuda-13.2, cuda-13.
inline bool newer(const std::string& a, const std::string& b) {
    std::size_t i = 0, j = 0;
    auto number = [](const std::string& s, std::size_t& at) {
        unsigned long value = 0;
        while (at < s.size() && std::isdigit(static_cast<unsigned char>(s[at])))
            value = value * 10 + static_cast<unsigned long>(s[at++] - '0');
        return value;
    };
    while (i < a.size() && j < b.size()) {
        const bool digits =
            std::isdigit(static_cast<unsigned char>(a[i])) && std::isdigit(static_cast<unsigned char>(b[j]));
        const unsigned long x = digits ? number(a, i) : static_cast<unsigned char>(a[i++]),
                            y = digits ? number(b, j) : static_cast<unsigned char>(b[j++]);
        if (x != y) return x > y;
    }
    return a.size() - i > b.size() - j;
}

// The folders `name` and `name.*` in a folder, the newest version first.
inline std::vector<std::string> versions_of(const std::string& name, const std::string& folder) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
        const std::string found = entry->path().filename().string();
        const bool version = found == name || found.compare(0, name.size() + 1, name + ".") == 0;
        if (version && entry->is_directory(ignored)) names.push_back(found);
    }
    std::sort(names.begin(), names.end(), newer);
    for (std::string& found : names) found = folder + "/" + found;
    return names;
}

}  // namespace detail

// The files to open, in this order; the loader finds a name without a folder. A file that two paths lead to is listed
// once. Files need not exist.
inline std::vector<std::string> cublas_places(const CublasSearch& search) {
    using namespace std::filesystem;
    std::vector<std::string> places;
    std::set<path> known;
    std::error_code ignored;
    auto value_of = [&](const char* name) -> std::string {
        const char* value = search.variable(name);
        return value ? value : "";
    };
    auto add = [&](const std::string& folder) {
        const path file = path(folder) / search.file();
        path real = weakly_canonical(file, ignored);
        if (known.insert(ignored ? file : real).second) places.push_back(file.string());
    };
    if (const std::string named = value_of("MASQUERADE_CUBLAS"); !named.empty()) {
        if (!is_directory(named, ignored)) return {named};
        add(named);
        return places;
    }
    places.push_back(search.file());

    std::vector<std::string> toolkits = {value_of("CUDA_HOME"), value_of("CUDA_PATH"), search.root + "/usr/local/cuda"};
    for (const std::string& folder : detail::versions_of(text("cuda-", search.major), search.root + "/usr/local"))
        toolkits.push_back(folder);
    toolkits.push_back(search.root + "/opt/cuda");
    for (const std::string& toolkit : toolkits)
        for (const char* folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib"})
            if (!toolkit.empty()) add(toolkit + folder);

    // `lib` of a Python: lib/python3.12/site-packages/nvidia/cu13/lib, or .../cublas/lib as it was before CUDA 13.
    auto add_packages = [&](const std::string& lib) {
        for (const std::string& python : detail::versions_of("python3", lib))
            for (const char* packages : {"/site-packages", "/dist-packages"})
                for (const std::string& package : {text("cu", search.major), std::string("cublas")})
                    if (is_directory(python + packages + "/nvidia/" + package, ignored))
                        add(python + packages + "/nvidia/" + package + "/lib");
    };
    const std::string all = value_of("PATH");
    for (std::size_t from = 0; from < all.size();) {
        const std::size_t end = std::min(all.find(':', from), all.size());
        const path python = path(all.substr(from, end - from)) / "python3";
        from = end + 1;
        if (python.is_relative() || !exists(python, ignored)) continue;
        add_packages((python.parent_path() / "../lib").string());
        add_packages((canonical(python, ignored).parent_path() / "../lib").string());
    }
    for (const std::string& folder :
         {value_of("VIRTUAL_ENV"), value_of("HOME").empty() ? "" : value_of("HOME") + "/.local"})
        if (!folder.empty()) add_packages(folder + "/lib");
    add_packages(search.root + "/usr/local/lib");
    add_packages(search.root + "/usr/lib");
    return places;
}

// The result of the search: a library, or null and the reason in one line.
struct CublasOpened {
    void* library = nullptr;
    std::string place, reason;
};

inline CublasOpened open_cublas(const CublasSearch& search) {
    std::string failed;
    std::size_t absent = 0;
    const std::vector<std::string> places = cublas_places(search);
    for (const std::string& place : places) {
        std::error_code ignored;
        const bool named = place.find('/') != std::string::npos || places.size() == 1;
        if (named && !std::filesystem::exists(place, ignored)) {
            if (places.size() == 1) failed = text("; ", place, " does not exist");
            absent++;
            continue;
        }
        if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return {library, place, ""};
        const char* why = dlerror();
        const std::string reason = why ? why : "no reason given";  // as a rule it begins with the name
        failed += reason.compare(0, place.size(), place) == 0 ? "; " + reason : "; " + place + ": " + reason;
    }
    return {nullptr, "",
            text("no ", search.file(), " can be opened", failed,
                 places.size() > 1 ? text("; ", absent, " other places do not have it") : std::string(),
                 "; install cuBLAS of CUDA ", search.major, ", or name the file or its folder in MASQUERADE_CUBLAS")};
}

}  // namespace masquerade
