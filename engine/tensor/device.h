// SPDX-License-Identifier: MIT
#pragma once

namespace masquerade {

enum class Device : unsigned char { cpu, cuda };

constexpr const char* name_of(Device d) { return d == Device::cpu ? "cpu" : "cuda"; }

}  // namespace masquerade
