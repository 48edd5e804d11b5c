// SPDX-License-Identifier: MIT
#pragma once

namespace masquerade {

inline constexpr const char* version = "0.2";

}  // namespace masquerade
