// SPDX-License-Identifier: MIT
// A device library of an older make: whoever reads more of it than the stamp meets a null pointer.
#include "engine/ops/library.h"

extern "C" __attribute__((visibility("default"))) const masquerade::CudaLibrary* masquerade_cuda() {
    static masquerade::CudaLibrary library;
    library.stamp = masquerade::this_stamp();
    library.stamp.interface ^= 1;
    return &library;
}
