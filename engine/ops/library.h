// SPDX-License-Identifier: MIT
// The interface to the CUDA code, which is one shared library, opened at run time: what the library provides, and how a
// program finds and uses it. The library exports one function, masquerade_cuda(), of type CudaEntry.
//
// Errors pass between program and library as exceptions of base/error.h. Program and library have separate copies of
// these types, but share the C++ runtime, which compares types by name. An accepted library stays open until the
// process ends.
#pragma once
#include <string>

#include "engine/ops/stamp.h"

namespace masquerade {

struct CudaLibrary {
    LibraryStamp stamp;
    const OpTable* ops = nullptr;  // no slot is null: a missing op throws
    const bool* has = nullptr;     // op_count entries: whether the library implements each op
    DeviceRuntime runtime;
};
using CudaEntry = const CudaLibrary* (*)();

// Returns the path of the library: the value of MASQUERADE_CUDA if it is set, else the file in the folder of the
// program or, if it is not there, in the folder of `make install`. Returns "" if there is no file.
std::string find_cuda_library();

// Opens the library and compares stamps. Throws BadInput if the file is no CUDA library of masquerade, or if its stamp
// differs from this_stamp().
const CudaLibrary& open_cuda_library(const std::string& path);

// Makes this library the implementation of Device::cuda. Null: there is none from now on.
void use_cuda_library(const CudaLibrary* library);

// Finds and opens the library, checks that there is a GPU, and calls use_cuda_library(). Later calls return the same
// result. Returns an empty string if Device::cuda can be used, else the reason in one line.
std::string use_cuda();

// Returns the names of the ops that the library in use does not implement: "attention_forward, adamw".
std::string missing_cuda_ops();

}  // namespace masquerade
