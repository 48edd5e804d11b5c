// SPDX-License-Identifier: MIT
// The one stream of the stand-ins for CUDA's runtime and cuBLASLt. Work that is submitted runs at once, or is kept for
// the graph that is being captured.
#pragma once
#include <functional>
#include <string>

namespace masquerade::ptx {

// Says what CUDA's manual forbids, on standard error, and counts it: the tests expect none.
void complain(const std::string& what);

// `work` returns the fault that it ends with, or "". After a fault, every later call of the runtime fails, as on a GPU.
void submit(std::function<std::string()> work);

}  // namespace masquerade::ptx
