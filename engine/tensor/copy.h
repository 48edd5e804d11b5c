// SPDX-License-Identifier: MIT
// Bytes of tensors, wherever they lie. Host code reads and writes a tensor of another device through these alone.
#pragma once
#include "engine/tensor/view.h"

namespace masquerade {

// to = from, alike in shape and type, on any two devices. What comes to the CPU is there on return.
void copy(const View& from, const View& to);
void copy_bytes(const void* from, Device from_device, void* to, Device to_device, std::size_t bytes);

// Every byte of `to`: 0 makes zeros of all number types, 0xff NaN.
void fill_bytes(const View& to, int byte);
void fill_bytes(void* data, int byte, std::size_t bytes, Device device);

// Until all that was asked of the device so far is done.
void wait_for(Device device);

}  // namespace masquerade
