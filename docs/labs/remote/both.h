// SPDX-License-Identifier: MIT
// What docs/labs/NN/remote.cpp includes: for the judge, REMOTE makes a stub; for the server, it enters the function and makes main.
#pragma once
#ifdef LAB_JUDGE
#include "docs/labs/remote/judge.h"
using remote::both;
using remote::many;
#else
#include "docs/labs/remote/server.h"
int main() { return remote::serve(); }
#endif
