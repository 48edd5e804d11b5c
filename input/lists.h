// SPDX-License-Identifier: MIT
// Names of lists that are used everywhere.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

using Strings = std::vector<std::string>;
using Tokens = std::vector<int>;  // token ids
using Texts = std::vector<Tokens>;
using Numbers = std::vector<double>;
using Vectors = std::vector<Numbers>;

}  // namespace masquerade
