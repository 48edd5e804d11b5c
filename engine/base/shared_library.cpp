// SPDX-License-Identifier: MIT
#include "engine/base/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/error.h"

#ifndef MASQUERADE_LIBRARY_FOLDER
#define MASQUERADE_LIBRARY_FOLDER "/usr/local/lib"
#endif

namespace masquerade {
namespace {

// Returns the message of dlerror() without line breaks, and without `path` at its beginning.
std::string loader_error(const std::string& path) {
    const char* said = dlerror();
    std::string reason = said ? said : "unknown";
    if (reason.compare(0, path.size() + 2, path + ": ") == 0) reason.erase(0, path.size() + 2);
    for (char& c : reason)
        if (c == '\n') c = ' ';
    return reason;
}

}  // namespace

std::string find_library(const std::string& file, const char* variable) {
    if (const char* named = std::getenv(variable); named && *named) return named;
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
    for (const fs::path& folder : {program.parent_path(), fs::path(MASQUERADE_LIBRARY_FOLDER)})
        if (!folder.empty() && fs::exists(folder / file, ignored)) return (folder / file).string();
    return "";
}

void* open_library(const std::string& path, const std::string& what) {
    // If a name has no slash, dlopen() would search the system's library folders, not the current folder.
    const std::string exact = path.find('/') == std::string::npos ? "./" + path : path;
    void* handle = dlopen(exact.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw BadInput(what, ' ', path, " cannot be opened: ", loader_error(exact));
    return handle;
}

}  // namespace masquerade
