// SPDX-License-Identifier: MIT
#include "engine/tensor/copy.h"

#include <cstring>

#include "engine/tensor/runtime.h"

namespace masquerade {

void copy(const View& from, const View& to) {
    if (from.shape != to.shape || from.dtype != to.dtype)
        throw Error("copy: ", from.path, " is ", from.shape, " ", name_of(from.dtype), " but ", to.path, " is ",
                    to.shape, " ", name_of(to.dtype), "; they must be alike");
    copy_bytes(from.data, from.device, to.data, to.device, from.bytes());
}

void copy_bytes(const void* from, Device from_device, void* to, Device to_device, std::size_t bytes) {
    if (bytes == 0) return;
    if (from_device == Device::cpu && to_device == Device::cpu)
        std::memmove(to, from, bytes);
    else
        cuda_runtime().copy(to, from, bytes,
                            from_device == Device::cpu ? Way::to_device
                            : to_device == Device::cpu ? Way::from_device
                                                       : Way::within_device);
}

void fill_bytes(const View& to, int byte) { fill_bytes(to.data, byte, to.bytes(), to.device); }

void fill_bytes(void* data, int byte, std::size_t bytes, Device device) {
    if (bytes == 0) return;
    if (device == Device::cpu)
        std::memset(data, byte, bytes);
    else
        cuda_runtime().fill(data, byte, bytes);
}

void add_late_sums(Device device, const void* gradient) {
    if (device != Device::cpu) cuda_runtime().add_late_sums(gradient);
}
void forget_late_sums(Device device) {
    if (device != Device::cpu && has_cuda_runtime()) cuda_runtime().forget_late_sums();
}

void wait_for(Device device) {
    if (device != Device::cpu) cuda_runtime().synchronise();
}

}  // namespace masquerade
