#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer/word_characters.h: the characters of which words are made, \\w of regular expressions.

    tools/unicode/make_word_characters.py > tokenizer/word_characters.h

Unicode Technical Standard 18, Annex C: Alphabetic, marks, decimal digits, connector punctuation, join
controls. Alphabetic is not in Python's unicodedata; it is the letters, the letter numbers, some marks, and
the symbols below.
"""
import sys
import unicodedata

JOIN_CONTROLS = {0x200C, 0x200D}
LETTERS_IN_SHAPES = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]


def is_word(c):
    category = unicodedata.category(chr(c))
    return (category[0] in "LM" or category in ("Nl", "Nd", "Pc") or c in JOIN_CONTROLS
            or any(first <= c <= last for first, last in LETTERS_IN_SHAPES))


def main():
    ranges = []
    for c in range(sys.maxunicode + 1):
        if not is_word(c):
            continue
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    print("// SPDX-License-Identifier: MIT")
    print(f"// Written by tools/unicode/make_word_characters.py from Unicode {unicodedata.unidata_version}: "
          "do not edit.")
    print("// The characters of which words are made: letters, marks, digits, connectors such as the "
          "underscore.")
    print("#pragma once\n\nnamespace masquerade {\n")
    print("struct WordRange {\n    char32_t first, last;\n};\n")
    print("constexpr WordRange word_ranges[] = {")
    line = "   "
    for first, last in ranges:
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};\n\n}  // namespace masquerade")


main()
