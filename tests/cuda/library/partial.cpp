// SPDX-License-Identifier: MIT
// The fake device library without a form of the op store_rows.
#define WITHOUT store_rows
#include "tests/cuda/library/fake.cpp"
