// SPDX-License-Identifier: MIT
// Finds and opens the libraries of the project that a program opens only when it needs them: the CUDA half, and the
// exchange between processes.
#pragma once
#include <string>

namespace masquerade {

// Returns the path of the library: the value of the environment variable `variable`, or the file beside the program or
// in the folder of `make install`. Returns "" if there is no such file.
std::string find_library(const std::string& file, const char* variable);
// Opens the library, and returns the handle for dlsym(). Throws BadInput if it cannot be opened. `what` is the name of
// the library for the message: "the CUDA library".
void* open_library(const std::string& path, const std::string& what);

}  // namespace masquerade
