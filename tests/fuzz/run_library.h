// SPDX-License-Identifier: MIT
#pragma once
#include "tests/fuzz/target.h"

namespace masquerade::fuzz {

const Target& library_target();  // calls of the C interface

}  // namespace masquerade::fuzz
