// SPDX-License-Identifier: MIT
// The interface to the CUDA code, which is one shared library that programs open at run time: what the library
// provides, and how a program finds and uses it. The library exports one function, masquerade_cuda(), of type
// CudaEntry.
//
// The library throws exceptions of the types in base/error.h, and the program catches them. Program and library have
// separate copies of these types, but share the C++ runtime, which compares types by name. A library that
// open_cuda_library() has accepted stays open until the process ends.
#pragma once
#include <string>

#include "engine/ops/stamp.h"

namespace masquerade {

struct CudaLibrary {
    LibraryStamp stamp;
    const OpTable* ops = nullptr;  // function of each op, never null: if an op is missing, its function throws
    const bool* has = nullptr;     // one entry for each op: true if the library implements it
    DeviceRuntime runtime;
};
using CudaEntry = const CudaLibrary* (*)();

// Returns the path of the CUDA library: the value of the environment variable MASQUERADE_CUDA if it is set and not
// empty; otherwise libmasquerade_cuda.so in the folder of the program or, if that file does not exist, in the library
// folder of `make install`. Returns "" if neither file exists.
std::string find_cuda_library();

// Opens the library. Throws BadInput if the file cannot be opened, if it is no CUDA library of masquerade, or if it was
// built for another version or another list of ops than the program, that is, if its stamp differs from this_stamp().
const CudaLibrary& open_cuda_library(const std::string& path);

// Makes `library` the implementation of Device::cuda. If `library` is null, Device::cuda cannot be used from now on.
void use_cuda_library(const CudaLibrary* library);

// Finds and opens the library, checks that there is a GPU, and calls use_cuda_library(). If a launcher has started
// several processes on this machine, each of them uses another GPU, if there are enough. Returns an empty string if
// Device::cuda can be used, else the reason in one line. Later calls only return the first result again.
std::string use_cuda();

// Returns the names of the ops that the library in use does not implement, such as "attention_forward, adamw". Returns
// an empty string if no op is missing or no library is in use.
std::string missing_cuda_ops();

}  // namespace masquerade
