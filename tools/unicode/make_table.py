#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer/characters_table.h: what the tokenizer knows of Unicode.

    tools/unicode/make_table.py > tokenizer/characters_table.h

BERT's reference tokenizer is a Python program, so Python's unicodedata is the judge of the main tables. The
second set, of what the Hugging Face library does otherwise, is found by asking that library about every code
point, so writing the table anew needs `pip install tokenizers`; nothing else does. Counts of these
differences go to standard error. Hangul syllables decompose by arithmetic and are left out. Takes about half
a minute.
"""
import collections
import sys
import unicodedata

import tokenizers

from judges import CONTROL, IDEOGRAPH, MARK, NONSTARTER, POINTS, PUNCTUATION, SPACE, SYLLABLES
from judges import Google, HuggingFace

FLAGS = {
    "control": "NUL, U+FFFD, categories Cc and Cf: cleaning drops it",
    "space": "separates words; with `control`: only if cleaning has not dropped it",
    "ideograph": "a word by itself",
    "punctuation": "ASCII's, and categories P*: a word by itself",
    "mark": "category Mn: stripping drops it",
    "cased": "has case, and is not ignorable",
    "ignorable": "Unicode's Case_Ignorable: a final sigma looks past it",
    "nonstarter": "it, or all it decomposes to, has a canonical combining class but 0",
}


class Tables:
    """Facts of every code point under one judge; `lower` and `strip` hold what does not stay itself."""

    def __init__(self, judge):
        self.flags = {c: judge.flags(c) for c in POINTS}
        self.lower = {c: r for c in POINTS if (r := judge.lower(c)) != [c]}
        self.strip = {c: r for c in POINTS if c not in SYLLABLES and not self.flags[c] & (MARK | SPACE)
                      and (r := judge.strip(c)) != [c]}
        self.check(judge)

    def kept_nonstarters(self):
        return [c for c, f in self.flags.items() if f & NONSTARTER and not f & MARK]

    def check(self, judge):
        """That the tables, one after the other and in either order, are what the judge does in one go."""
        def lowered(points):
            return [x for c in points for x in self.lower.get(c, [c])]

        def stripped(points):
            return [x for c in points if not self.flags[c] & MARK for x in self.strip.get(c, [c])]

        for c in POINTS:
            flags = self.flags[c]
            if flags & SPACE:
                assert not flags & ~(CONTROL | SPACE)
                continue
            if c in SYLLABLES:
                assert flags == 0 and c not in self.lower
                s = c - 0xAC00
                jamo = [0x1100 + s // 588, 0x1161 + s // 28 % 21] + ([0x11A7 + s % 28] if s % 28 else [])
                assert judge.strip(c) == judge.both(c) == jamo
                continue
            result = judge.both(c)
            assert stripped(lowered([c])) == lowered(stripped([c])) == result, hex(c)
            # A word boundary shows in the character itself, or in the one it becomes.
            kinds = {self.flags[r] & (CONTROL | SPACE | IDEOGRAPH) for r in result}
            assert kinds <= {flags & (CONTROL | IDEOGRAPH)}, hex(c)
            if any((self.flags[r] | flags) & PUNCTUATION for r in result):
                assert len(result) == 1, hex(c)


def flag_ranges(flags):
    """(first, last, flags) of neighbours with equal flags; flags maps code points in ascending order."""
    ranges = []
    for c, f in flags.items():
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == f:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, f])
    return ranges


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


class Header:
    """Writes arrays, and hashes their numbers as 32 bits each, in the order written."""

    def __init__(self):
        self.hash = 0xCBF29CE484222325

    def array(self, declaration, formats, rows):
        print(f"constexpr {declaration}[] = {{")
        line = "   "
        for row in rows:
            item = " {" + ", ".join(self.item(f, value) for f, value in zip(formats, row)) + "},"
            if len(line) + len(item) > 110:
                print(line)
                line = "   "
            line += item
        print(line + "\n};\n")

    def item(self, form, value):
        if isinstance(value, list):
            padded = value + [0] * (4 - len(value))
            return "{" + ", ".join([self.item(form, x) for x in padded][:len(value)]) + "}"
        self.hash = (self.hash ^ value & 0xFFFFFFFF) * 0x100000001B3 % 2**64
        return f"0x{value:X}" if form == "hex" else str(value)

    def flags(self, name, flags):
        self.array(f"FlagRange {name}", ("hex", "hex", "hex"), flag_ranges(flags))

    def expansions(self, name, expansions):
        self.array(f"Expansion {name}", ("hex", "hex"), expansions.items())

    def classes(self, name, classes):
        self.array(f"CombiningClass {name}", ("hex", "decimal"), classes.items())

    def changes(self, name, changes):
        shifts = {c: r[0] - c for c, r in changes.items() if len(r) == 1}
        self.array(f"ShiftRange {name}_shifts", ("hex", "hex", "decimal", "decimal"), shift_ranges(shifts))
        self.expansions(f"{name}_expansions", {c: r for c, r in changes.items() if len(r) != 1})


def differences(ours, theirs):
    """Code points for which the second table has another entry than the first; none: itself."""
    points = sorted(ours.keys() | theirs.keys())
    return {c: theirs.get(c, [c]) for c in points if ours.get(c, [c]) != theirs.get(c, [c])}


def report(name, points):
    counts = collections.Counter(unicodedata.category(chr(c)) for c in points)
    print(f"{name}: {sum(counts.values())}", dict(counts.most_common()), file=sys.stderr)


def main():
    reference = Google()
    library = HuggingFace(reference)
    google, hugging_face = Tables(reference), Tables(library)
    classes = {c: unicodedata.combining(chr(c)) for c in google.kept_nonstarters()}
    other_classes = {c: k for c in hugging_face.kept_nonstarters()
                     if (k := library.combining_class(c)) != classes.get(c)}
    other_flags = {c: f for c, f in hugging_face.flags.items() if f != google.flags[c]}
    other_lower = differences(google.lower, hugging_face.lower)
    other_strip = {c: r for c, r in differences(google.strip, hugging_face.strip).items()
                   if not hugging_face.flags[c] & (MARK | SPACE)}
    for table in (google.lower, google.strip, other_lower, other_strip):
        assert all(1 <= len(result) <= 3 for result in table.values())

    version = unicodedata.unidata_version
    print(f"""// SPDX-License-Identifier: MIT
// Written by tools/unicode/make_table.py from Unicode {version} and Hugging Face tokenizers \
{tokenizers.__version__}: do not edit.
#pragma once
#include <cstdint>

namespace masquerade {{

constexpr const char* unicode_data_version = "{version}";
constexpr const char* hugging_face_data_version = "{tokenizers.__version__}";

struct Fact {{
    enum Flag : std::uint32_t {{""")
    for i, (name, meaning) in enumerate(FLAGS.items()):
        print(f"        {name} = {1 << i},".ljust(27) + f"// {meaning}")
    print("""    };
};

struct FlagRange {
    char32_t first, last;
    std::uint32_t flags;
};
struct ShiftRange {
    char32_t first, last;
    int step, shift;
};
struct Expansion {
    char32_t from, to[4];
};
struct CombiningClass {
    char32_t c;
    int value;
};

// BERT's reference. Each table is of a code point by itself.""")
    header = Header()
    header.flags("flag_ranges", {c: f for c, f in google.flags.items() if f})
    print("// Lower case, full mapping; a final sigma is not seen here.")
    header.changes("lower", google.lower)
    print("// Canonical decomposition (NFD) without marks, of what is no mark, space or Hangul syllable.")
    header.changes("strip", google.strip)
    print("// Nonstarters that stripping leaves.")
    header.classes("combining_classes", classes)
    print("// The Hugging Face library where it differs: each row replaces what the tables above say. A row with\n"
          "// no flags is an ordinary character; what lower-casing or stripping leaves alone becomes itself.")
    header.flags("hugging_face_flags", other_flags)
    header.expansions("hugging_face_lower", other_lower)
    header.expansions("hugging_face_strip", other_strip)
    header.classes("hugging_face_classes", other_classes)
    print(f"""// Of every number above, by 64-bit FNV-1a: a test sees an edit by hand.
constexpr std::uint64_t characters_table_hash = {header.hash:#x};

}}  // namespace masquerade""")

    for i, name in enumerate(FLAGS):
        report(f"only the reference: {name}", [c for c in POINTS
               if google.flags[c] >> i & 1 and not hugging_face.flags[c] >> i & 1])
        report(f"only the library: {name}", [c for c in POINTS
               if hugging_face.flags[c] >> i & 1 and not google.flags[c] >> i & 1])
    report("lower-cased otherwise", other_lower)
    report("stripped otherwise", other_strip)
    report("sorted and not stripped", other_classes)


main()
