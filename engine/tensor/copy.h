// SPDX-License-Identifier: MIT
// Copies and fills the bytes of tensors on any device. Host code accesses tensors on other devices only through these
// functions.
#pragma once
#include "engine/tensor/view.h"

namespace masquerade {

// Copies `from` to `to`; both have the same shape and type, on any two devices. When a copy to the CPU returns, it is
// complete.
void copy(const View& from, const View& to);
void copy_bytes(const void* from, Device from_device, void* to, Device to_device, std::size_t bytes);

// Sets every byte of `to` to `byte`. In every number type, the byte 0 gives zeros and 0xff gives NaN.
void fill_bytes(const View& to, int byte);
void fill_bytes(void* data, int byte, std::size_t bytes, Device device);

// Waits until the device has done all work requested so far.
void wait_for(Device device);

}  // namespace masquerade
