// SPDX-License-Identifier: MIT
// A shared library that is no CUDA library of masquerade.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }
