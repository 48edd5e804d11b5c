#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer/unicode_table.h: what the tokenizer knows of Unicode, from Python's unicodedata.

    tools/unicode/make_table.py > tokenizer/unicode_table.h

The reference tokenizer is a Python program, so Python is the judge: each code point goes through Python's own
cleaning, lower-casing, decomposition and stripping, and only what changes is written. Hangul syllables
decompose by arithmetic and are left out.
"""
import sys
import unicodedata

DROP, SPACE, ALONE, ALONE_LOWERED, MARK, CASED, IGNORABLE, NONSTARTER, EXPANDS = (1 << i for i in range(9))
IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]
ASCII_PUNCTUATION = [(33, 47), (58, 64), (91, 96), (123, 126)]


def inside(c, ranges):
    return any(first <= c <= last for first, last in ranges)


def alone(c):
    """A word by itself: ideographs and punctuation."""
    return (inside(c, IDEOGRAPHS) or inside(c, ASCII_PUNCTUATION)
            or unicodedata.category(chr(c)).startswith("P"))


def lowered(c):
    """Lower case, canonical decomposition, without its marks; every code point by itself."""
    decomposed = unicodedata.normalize("NFD", chr(c).lower())
    return [ord(x) for x in decomposed if unicodedata.category(x) != "Mn"]


def describe(c):
    """The flags of a code point, and what it becomes in lower case (None: itself)."""
    x = chr(c)
    category = unicodedata.category(x)
    if c in (0, 0xFFFD) or (category in ("Cc", "Cf") and x not in "\t\n\r"):
        return DROP, None
    if x.isspace():
        return SPACE, None
    flags = 0
    # Cased and Case_Ignorable are not in unicodedata; how a final sigma is lower-cased shows them.
    if (x + "\u03a3").lower().endswith("\u03c2"):
        flags |= CASED
    elif ("A" + x + "\u03a3").lower().endswith("\u03c2"):
        flags |= IGNORABLE
    if all(unicodedata.combining(y) for y in unicodedata.normalize("NFD", x)):
        flags |= NONSTARTER
    if alone(c):
        flags |= ALONE
    if category == "Mn":
        assert not lowered(c) and flags & (IGNORABLE | ALONE) == IGNORABLE
        return flags | MARK, None
    if 0xAC00 <= c <= 0xD7A3:
        return flags, None
    result = lowered(c)
    assert 1 <= len(result) <= 3
    assert not any(chr(r).isspace() or inside(r, IDEOGRAPHS) and not alone(c) for r in result)
    if alone(c) or alone(result[0]):
        assert len(result) == 1
        flags |= ALONE_LOWERED
    if len(result) > 1:
        flags |= EXPANDS
    return flags, None if result == [c] else result


def flag_ranges(flags):
    first = 0
    for c in range(1, len(flags) + 1):
        if c == len(flags) or flags[c] != flags[first]:
            if flags[first]:
                yield first, c - 1, flags[first]
            first = c


def shift_ranges(shifts):
    """(first, last, step, shift): runs of one shift in steps of 1 or 2, as in Cyrillic's alternating case."""
    points = sorted(shifts)
    i = 0
    while i < len(points):
        j, step = i, 1
        if i + 1 < len(points) and points[i + 1] - points[i] == 2:
            step = 2
        while (j + 1 < len(points) and points[j + 1] == points[j] + step
               and shifts[points[j + 1]] == shifts[points[i]]):
            j += 1
        yield points[i], points[j], step, shifts[points[i]]
        i = j + 1


def write_array(declaration, rows):
    print(f"{declaration} = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(row) + "},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def main():
    described = [describe(c) for c in range(sys.maxunicode + 1)]
    shifts = {c: r[0] - c for c, (f, r) in enumerate(described) if r and len(r) == 1}
    expansions = [(c, r) for c, (f, r) in enumerate(described) if r and len(r) > 1]
    classes = [(c, unicodedata.combining(chr(c))) for c, (f, r) in enumerate(described)
               if f & NONSTARTER and not f & MARK]
    print("// SPDX-License-Identifier: MIT")
    version = unicodedata.unidata_version
    print(f"// Written by tools/unicode/make_table.py from Unicode {version}: do not edit.")
    print("// Only tokenizer/unicode.cpp reads it; tokenizer/unicode.h says what the flags mean.")
    print('#pragma once\n#include "tokenizer/unicode.h"\n')
    print("namespace masquerade {\n")
    print(f'constexpr const char* unicode_data_version = "{version}";\n')
    print("struct FlagRange {\n    char32_t first, last;\n    std::uint32_t flags;\n};")
    print("struct ShiftRange {\n    char32_t first, last;\n    int step, shift;\n};")
    print("struct Expansion {\n    char32_t from, to[4];\n};")
    print("struct CombiningClass {\n    char32_t c;\n    int value;\n};\n")
    write_array("constexpr FlagRange flag_ranges[]",
                [(f"0x{a:X}", f"0x{b:X}", f"0x{f:X}") for a, b, f in flag_ranges([f for f, _ in described])])
    print()
    write_array("constexpr ShiftRange shift_ranges[]",
                [(f"0x{a:X}", f"0x{b:X}", str(s), str(d)) for a, b, s, d in shift_ranges(shifts)])
    print()
    write_array("constexpr Expansion expansions[]",
                [(f"0x{c:X}", "{" + ", ".join(f"0x{x:X}" for x in r) + "}") for c, r in expansions])
    print()
    write_array("constexpr CombiningClass combining_classes[]", [(f"0x{c:X}", str(k)) for c, k in classes])
    print("\n}  // namespace masquerade")


main()
