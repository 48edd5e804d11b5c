// SPDX-License-Identifier: MIT
// Included by docs/labs/NN/remote.cpp. In the judge, REMOTE makes a stub; in the server, it registers the function and
// makes main.
#pragma once
#ifdef LAB_JUDGE
#include "docs/labs/remote/judge.h"
using remote::both;
using remote::many;
#else
#include "docs/labs/remote/server.h"
int main() { return remote::serve(); }
#endif
