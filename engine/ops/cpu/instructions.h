// SPDX-License-Identifier: MIT
// COMPILE_FOR(sets) and END_COMPILE_FOR stand before and after functions that are compiled for these instruction sets,
// such as "avx2,fma", whatever the rest of the file is compiled for. Include all headers of the standard library and of
// intrinsics before: the linker could choose their functions, compiled for these sets, for the whole program.
#pragma once

#define MASQUERADE_PRAGMA(words) _Pragma(#words)
#ifdef __clang__
#define COMPILE_FOR(sets) MASQUERADE_PRAGMA(clang attribute push(__attribute__((target(sets))), apply_to = function))
#define END_COMPILE_FOR MASQUERADE_PRAGMA(clang attribute pop)
#else
#define COMPILE_FOR(sets) MASQUERADE_PRAGMA(GCC push_options) MASQUERADE_PRAGMA(GCC target(sets))
#define END_COMPILE_FOR MASQUERADE_PRAGMA(GCC pop_options)
#endif
