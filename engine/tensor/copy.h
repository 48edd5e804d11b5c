// SPDX-License-Identifier: MIT
// Copies and fills the bytes of tensors on any device. Host code accesses tensors on devices other than the CPU only
// through these functions.
#pragma once
#include "engine/tensor/view.h"

namespace masquerade {

// Copies `from` to `to`. Both tensors must have the same shape and type; each may be on any device. A copy to the CPU
// is complete when the function returns. A copy to another device may still be under way, but the caller may already
// change `from`.
void copy(const View& from, const View& to);
void copy_bytes(const void* from, Device from_device, void* to, Device to_device, std::size_t bytes);

// Sets every byte of `to` to `byte`. In every number type, the byte 0 makes all numbers 0, and 0xff makes them NaN.
void fill_bytes(const View& to, int byte);
void fill_bytes(void* data, int byte, std::size_t bytes, Device device);

// See DeviceRuntime. On the CPU, no addition is late.
void add_late_sums(Device device, const void* gradient = nullptr);
void forget_late_sums(Device device);

// Waits until the device has finished all work requested so far.
void wait_for(Device device);

}  // namespace masquerade
