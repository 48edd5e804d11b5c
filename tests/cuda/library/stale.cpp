// SPDX-License-Identifier: MIT
// A device library with the stamp of another build. All its pointers are null, so a program that uses more of the
// library than the stamp crashes.
#include "engine/ops/library.h"

extern "C" __attribute__((visibility("default"))) const masquerade::CudaLibrary* masquerade_cuda() {
    static masquerade::CudaLibrary library;
    library.stamp = masquerade::this_stamp();
    library.stamp.interface ^= 1;
    return &library;
}
