// SPDX-License-Identifier: MIT
// Included by docs/labs/NN/remote.cpp. In the judge (the process of the check), the macro REMOTE defines a stub that
// calls the student's function in the server. In the server (the student's process), REMOTE registers the function, and
// this file defines main().
#pragma once
#ifdef LAB_JUDGE
#include "docs/labs/remote/judge.h"
using remote::both;
using remote::many;
#else
#include "docs/labs/remote/server.h"
int main() { return remote::serve(); }
#endif
