#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer/characters_table.h, the tokenizer's tables of Unicode.

    tools/unicode/make_table.py > tokenizer/characters_table.h

BERT's reference tokenizer is a Python program, so Python's unicodedata defines the main tables. A second set of tables
has the code points that the Hugging Face library treats differently; it is found by asking the library about every code
point, which needs `pip install tokenizers`. Hangul syllables are decomposed by arithmetic and are not in the tables.
Takes about half a minute.
"""
import os
import sys
import unicodedata

import tokenizers

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/tokenizer"))
from judges import (  # noqa: E402
    MARK, NONSTARTER, POINTS, SPACE, SYLLABLES, Google, HuggingFace, check, is_word)

FLAGS = {
    "drop": "dropped by cleaning: NUL, U+FFFD, category Cf, category Cc except tab, LF, CR; for Hugging Face also Co",
    "space": "separates words; a code point that also has `drop` does so only if cleaning is off",
    "ideograph": "a word by itself",
    "punctuation": "ASCII punctuation and symbols, and categories P*: a word by itself",
    "mark": "category Mn: dropped if accents are stripped",
    "cased": "has upper or lower case, and is not ignorable",
    "ignorable": "Unicode's Case_Ignorable: skipped by the rule for a sigma at the end of a word",
    "nonstarter": "all characters of its decomposition have a nonzero canonical combining class",
}


class Tables:
    """The tables of one judge (class Google or HuggingFace): the flags of every code point, and the code points that
    lower-casing (`lower`) and stripping (`strip`) change."""

    def __init__(self, judge):
        self.flags = {c: judge.flags(c) for c in POINTS}
        self.lower = {c: r for c in POINTS if (r := judge.lower(c)) != [c]}
        self.strip = {c: r for c in POINTS if c not in SYLLABLES and not self.flags[c] & (MARK | SPACE)
                      and (r := judge.strip(c)) != [c]}
        check(judge, self.flags, self.lower, self.strip)

    def check_stripping(self, decomposition):
        """Checks that `strip` is the full decomposition without marks. The tokenizer derives `strip` in this way, so no
        table of it is written."""
        def full(c):
            return [x for d in decomposition[c] for x in full(d)] if c in decomposition else [c]
        for c, flags in self.flags.items():
            if c not in SYLLABLES and not flags & (MARK | SPACE):
                stripped = [x for x in full(c) if not self.flags[x] & MARK]
                assert self.strip.get(c, [c]) == stripped, hex(c)

    def kept_nonstarters(self):
        return [c for c, f in self.flags.items() if f & NONSTARTER and not f & MARK]


def runs(values):
    """Returns the runs of neighbouring code points with equal values, as [skipped, length, value]. The keys must be
    ascending."""
    found, end = [], 0
    for c, value in values.items():
        if found and end == c and found[-1][2] == value:
            found[-1][1] += 1
        else:
            found.append([c - end, 1, value])
        end = c + 1
    return found


def in_base_26(number):
    """Returns a number as characters_table.h writes it: lower-case digits, then one capital digit."""
    digits = chr(ord("A") + number % 26)
    while number := number // 26:
        digits = chr(ord("a") + number % 26) + digits
    return digits


class Header:
    """Prints tables, and hashes what it printed: 64-bit FNV-1a."""

    def __init__(self):
        self.hash = 0xCBF29CE484222325

    def add(self, name, numbers):
        digits = "".join(map(in_base_26, numbers))
        table = "\n" + "".join(digits[i:i + 119] + "\n" for i in range(0, len(digits), 119))
        print(f'constexpr std::string_view {name} = R"({table})";\n')
        for byte in table.encode():
            self.hash = (self.hash ^ byte) * 0x100000001B3 % 2**64

    def values(self, name, values):
        self.add(name, (number for row in runs(values) for number in row))

    def changes(self, name, changes):
        numbers, end = [], 0
        for c in sorted(changes):
            numbers += [c - end, *changes[c], 0]
            end = c + 1
        self.add(name, numbers)


def differences(ours, theirs):
    """Returns the entries of `theirs` that differ from `ours`. If a code point has no entry, it maps to itself."""
    points = sorted(ours.keys() | theirs.keys())
    return {c: theirs.get(c, [c]) for c in points if ours.get(c, [c]) != theirs.get(c, [c])}


def one_step(c):
    """Returns the canonical decomposition in UnicodeData.txt: one or two code points; empty if there is none."""
    fields = unicodedata.decomposition(chr(c)).split()
    return [] if not fields or fields[0].startswith("<") else [int(x, 16) for x in fields]


def main():
    reference = Google()
    library = HuggingFace(reference)
    google, hugging_face = Tables(reference), Tables(library)
    decomposition = {c: d for c in POINTS if c not in SYLLABLES and (d := one_step(c))}
    google.check_stripping(decomposition)
    excluded = {c: 1 for c, d in decomposition.items()
                if len(d) == 2 and unicodedata.normalize("NFC", chr(c)) != chr(c)}
    classes = {c: k for c in POINTS if (k := unicodedata.combining(chr(c)))}
    for c in hugging_face.kept_nonstarters():
        assert library.combining_class(c) == classes[c], hex(c)
    other_flags = {c: f for c, f in hugging_face.flags.items() if f != google.flags[c]}
    other_lower = differences(google.lower, hugging_face.lower)
    other_strip = {c: r for c, r in differences(google.strip, hugging_face.strip).items()
                   if not hugging_face.flags[c] & (MARK | SPACE)}
    for table in (google.lower, decomposition, other_lower, other_strip):
        assert all(1 <= len(result) <= 3 and 0 not in result for result in table.values())

    version = unicodedata.unidata_version
    print(f"""// SPDX-License-Identifier: MIT
// Written by tools/unicode/make_table.py from Unicode {version} and Hugging Face tokenizers \
{tokenizers.__version__}: do not edit.
//
// A table is a list of numbers in base 26. The digits of a number are lower-case letters, but its last digit is a capital
// letter: "bC" is 1 * 26 + 2. Line ends mean nothing. table_rows.h reads the tables, of which there are two kinds:
//   values    for each range of code points with the same value: the number of code points that were skipped since the
//             previous range, the number of code points in the range, the value
//   changes   for each code point that changes: the number of code points that were skipped since the previous one, the
//             code points that it becomes, and a 0 that marks their end
#pragma once
#include <cstdint>
#include <string_view>

namespace masquerade::unicode {{

constexpr const char* version = "{version}";
constexpr const char* hugging_face_version = "{tokenizers.__version__}";

// Word characters (\\w of regular expressions) have the value 1: letters (also in circles or squares), marks,
// decimal digits, letter numbers such as Roman numerals, connectors such as the underscore, and join controls.""")
    header = Header()
    header.values("word_characters", {c: 1 for c in POINTS if is_word(c)})
    print("""// The flags (Character::Flag) of code points in BERT's reference tokenizer. Code points without flags are left out.""")
    for name, meaning in FLAGS.items():
        print(f"//   {name:<12}{meaning}")
    header.values("flags", {c: f for c, f in google.flags.items() if f})
    print("// Full lower-case mapping of single code points, without the special form of a sigma at the end of a word.")
    header.changes("lower", google.lower)
    print("// One step of canonical decomposition: the parts may decompose further. Hangul syllables are not included.")
    header.changes("decomposition", decomposition)
    print("// Code points that decompose into two parts, but that canonical composition (NFC) never creates, have the value 1.")
    header.values("never_composed", excluded)
    print("// The canonical combining class of each code point whose class is not 0.")
    header.values("combining_classes", classes)
    print("// Exceptions for Hugging Face's library. The entry of a code point in one of these tables replaces its entry above.\n"
          "// The value 0 means \"no flags\". In the tables of changes, a code point that does not change becomes itself.")
    header.values("hugging_face_flags", other_flags)
    header.changes("hugging_face_lower", other_lower)
    header.changes("hugging_face_strip", other_strip)
    print(f"""// The 64-bit FNV-1a hash of the text of all tables above. It lets a test detect changes that were made by hand.
constexpr std::uint64_t table_hash = {header.hash:#x};

}}  // namespace masquerade::unicode""")


main()
