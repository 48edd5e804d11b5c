// SPDX-License-Identifier: MIT
#include "engine/ops/library.h"

#include <dlfcn.h>

#include "engine/base/processes.h"
#include "engine/base/shared_library.h"

namespace masquerade {
namespace {

constexpr const char* file_name = "libmasquerade_cuda.so";

// Returns the stamp that identifies the build of a library as text, such as "masquerade cuda 0.1, interface 1:8f03...".
// The stamp of an unrelated library may contain any bytes; bytes that cannot be printed become "?".
std::string shown(const LibraryStamp& s) {
    auto printable = [](const char* from, std::size_t size) {
        std::string word(from, strnlen(from, size));
        for (char& c : word)
            if (c < ' ' || c > '~') c = '?';
        return word;
    };
    std::ostringstream interface;
    interface << std::hex << s.interface;
    return text(printable(s.kind, sizeof s.kind), ' ', printable(s.version, sizeof s.version), ", interface ",
                s.edition, ':', interface.str());
}

}  // namespace

std::string find_cuda_library() { return find_library(file_name, "MASQUERADE_CUDA"); }

const CudaLibrary& open_cuda_library(const std::string& path) {
    constexpr LibraryStamp expected = this_stamp();
    void* handle = open_library(path, "the CUDA library");
    auto entry = reinterpret_cast<CudaEntry>(dlsym(handle, "masquerade_cuda"));
    const CudaLibrary* library = entry ? entry() : nullptr;
    if (!library) {
        dlclose(handle);
        throw BadInput(path, " is no CUDA library of masquerade: it lacks masquerade_cuda(), expected ",
                       shown(expected), "; run make, or name another in MASQUERADE_CUDA");
    }
    const LibraryStamp found = library->stamp;
    if (!same(found, expected)) {
        dlclose(handle);
        throw BadInput("the CUDA library ", path, " was built for another version: ", shown(found), ", expected ",
                       shown(expected), "; run make cuda (needs nvcc), or remove it");
    }
    return *library;
}

std::string use_cuda() {
    static const std::string why_not = []() -> std::string {
        const std::string path = find_cuda_library();
        if (path.empty()) return "there is no CUDA library (make cuda builds it, with nvcc)";
        try {
            const CudaLibrary& library = open_cuda_library(path);
            const Answer answer = library.runtime.answer(launched().local_rank);
            if (answer.devices == 0) return text("no GPU answers: ", answer.reason);
            use_cuda_library(&library);
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    }();
    return why_not;
}

}  // namespace masquerade
