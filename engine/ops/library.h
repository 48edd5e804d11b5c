// SPDX-License-Identifier: MIT
// The interface to the CUDA code, which is one shared library, opened at run time: what the library provides, and how a
// program finds and uses it. The library exports one function, masquerade_cuda(), of type CudaEntry.
//
// Errors pass between program and library as exceptions of base/error.h. Both have their own copy of these types; the
// C++ runtime, which both share, compares types by name. A library that was accepted stays open until the process ends.
#pragma once
#include <string>

#include "engine/ops/stamp.h"

namespace masquerade {

struct CudaLibrary {
    LibraryStamp stamp;
    const OpTable* ops = nullptr;  // no slot is null: a missing op throws
    const bool* has = nullptr;     // op_count entries: whether the library implements the op
    DeviceRuntime runtime;
};
using CudaEntry = const CudaLibrary* (*)();

// The path of the library. If MASQUERADE_CUDA is set, its value; else the file beside the program or, if there is none,
// in the folder of `make install`; "" if there is none.
std::string find_cuda_library();

// Opens the library and compares stamps. Throws BadInput if it is no library of this program or its stamp differs.
const CudaLibrary& open_cuda_library(const std::string& path);

// Makes this library the implementation of Device::cuda; null: there is none.
void use_cuda_library(const CudaLibrary* library);

// Finds the library, opens it, checks for a GPU, and uses the library; all of this only once. Returns an empty string
// if Device::cuda can be used from now on, otherwise the reason in one line.
std::string use_cuda();

// The ops that the library in use does not implement: "attention_forward, adamw".
std::string missing_cuda_ops();

}  // namespace masquerade
