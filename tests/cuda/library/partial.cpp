// SPDX-License-Identifier: MIT
// The same device, but of one op it has no form.
#define WITHOUT store_rows
#include "tests/cuda/library/fake.cpp"
