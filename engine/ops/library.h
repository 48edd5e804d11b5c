// SPDX-License-Identifier: MIT
// The seam to the CUDA half, which is one shared library, opened at run time: what it hands over, and how a program
// comes to use it. The library exports one function, masquerade_cuda(), of type CudaEntry.
//
// Errors cross the seam as exceptions of base/error.h: both sides hold their own copy of those types, and the C++
// runtime, which both share, knows them by name. A library stays open to the end of the process.
#pragma once
#include <string>

#include "engine/ops/stamp.h"

namespace masquerade {

struct CudaLibrary {
    LibraryStamp stamp;
    const OpTable* ops = nullptr;  // no slot is null: an op that is missing throws
    const bool* has = nullptr;     // op_count of them: whether the library has a form of its own
    DeviceRuntime runtime;
};
using CudaEntry = const CudaLibrary* (*)();

// Where the library is looked for: the path in MASQUERADE_CUDA alone where that is set; else beside the program, then
// in the folder that `make install` puts it into. "" where there is none.
std::string find_cuda_library();

// Opens it and compares stamps. BadInput, one line, if the file is no library, another program's, or its stamp differs.
const CudaLibrary& open_cuda_library(const std::string& path);

// From now on this library is Device::cuda; null: there is none.
void use_cuda_library(const CudaLibrary* library);

// The whole way, once: finds the library, opens it, asks for a GPU, and uses it. Empty where Device::cuda can be used
// from now on, otherwise why not, in one line.
std::string use_cuda();

// The ops that the library in use has no form of: "attention_forward, adamw".
std::string missing_cuda_ops();

}  // namespace masquerade
