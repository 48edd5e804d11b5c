// SPDX-License-Identifier: MIT
// Lab 6, for you to write. docs/labs/06-univae.md describes the task. `make lab LAB=06` checks your work.
#include "docs/labs/06/lab.h"

Mask mask(Kind /*kind*/, std::size_t /*source*/, std::size_t /*target*/) { return {}; }

Joint joint(const Model& /*model*/, const Tokens& /*source*/, const Tokens& /*target*/) { return {}; }

Rows encode(const Model& /*model*/, const Tokens& /*source*/) { return {}; }

Rows decode(const Model& /*model*/, const Rows& /*z*/, const Tokens& /*target*/) { return {}; }

Cache begin(const Model& /*model*/, const Rows& /*z*/) { return {}; }

Row step(const Model& /*model*/, Cache& /*cache*/, int /*token*/) { return {}; }

Leak leak(const Forward& /*forward*/, const Model& /*model*/, const Tokens& /*source*/, const Tokens& /*target*/) {
    return Leak::none;
}
