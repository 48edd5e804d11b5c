#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer/characters_table.h, the tokenizer's tables of Unicode.

    tools/unicode/make_table.py > tokenizer/characters_table.h

BERT's reference tokenizer is a Python program, so Python's unicodedata defines the main tables. A second set of tables
has the code points that the Hugging Face library treats differently; it is found by asking the library about every code
point, which needs `pip install tokenizers`. Hangul syllables are decomposed by arithmetic and are not in the tables.
Takes about half a minute.
"""
import itertools
import os
import sys
import unicodedata

import tokenizers

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/tokenizer"))
from judges import (  # noqa: E402
    MARK, NONSTARTER, POINTS, SPACE, SYLLABLES, Google, HuggingFace, check, is_word)

FLAGS = {
    "control": "dropped by cleaning: NUL, U+FFFD, category Cf, Cc but tab, LF and CR; Hugging Face: Co",
    "space": "separates words; if `control` is also set, only without cleaning",
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


def shifts(changes):
    """Returns the runs of code points that change by the same offset, as [first, count, step, offset]. step is 2 if
    upper and lower case alternate."""
    left, found = {c: to - c for c, (to,) in changes.items()}, []
    for c in sorted(left):
        if c in left:
            offset = left[c]
            counts = {step: next(n for n in itertools.count(1) if left.get(c + n * step) != offset) for step in (1, 2)}
            step = max(counts, key=counts.get)
            found.append([c, counts[step], step, offset])
            for n in range(counts[step]):
                del left[c + n * step]
    return found


def neighbours(changes, gap):
    """Returns groups of code points whose distance is less than `gap`, as (first, results). Code points in between map
    to themselves."""
    found, end = [], 0
    for c in sorted(changes):
        more = [[x] for x in range(end, c)] + [changes[c]] if c - end < gap else []
        if found and more and columns(joined(found[-1][1] + more)) < 100:
            found[-1][1].extend(more)
        else:
            found.append((c, [changes[c]]))
        end = c + 1
    return found


def joined(texts):
    return " ".join(map(written, texts))


def written(points):
    """Returns the code points as part of a string literal: left-to-right letters unchanged, all others as escapes."""
    def one(c):
        x = chr(c)
        if 32 < c < 127 and x not in '"\\' or unicodedata.category(x)[0] == "L" and unicodedata.bidirectional(x) == "L":
            return x
        return f"\\u{c:04X}" if c < 0x10000 else f"\\U{c:08X}"
    return "".join(map(one, points))


def columns(text):
    return sum(2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text)


class Header:
    """Prints tables, and hashes their numbers, 32 bits each, in the printed order."""

    def __init__(self):
        self.hash = 0xCBF29CE484222325

    def rows(self, declaration, rows):
        print(f"constexpr {declaration}[] = {{")
        line = "   "
        for row in rows:
            if columns(line + row) > 116:
                print(line)
                line = "   "
            line += f" {{{row}}},"
        print(line + "\n};\n")

    def add(self, numbers):
        for number in numbers:
            self.hash = (self.hash ^ number % 2**32) * 0x100000001B3 % 2**64

    def numbers(self, declaration, rows):
        self.rows(declaration, (", ".join(map(str, row)) for row in rows))
        self.add(number for row in rows for number in row)

    def values(self, name, values):
        self.numbers(f"Run {name}", runs(values))

    def changes(self, name, changes, gap):
        rows = neighbours(changes, gap)
        self.rows(f"Change {name}", (f'0x{first:X}, U"{joined(texts)}"' for first, texts in rows))
        for first, texts in rows:
            for c, text in enumerate(texts, first):
                self.add([c, *text])


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
    longer = {c: r for c, r in google.lower.items() if len(r) > 1}
    for table in (google.lower, decomposition, other_lower, other_strip):
        assert all(1 <= len(result) <= 3 for result in table.values())

    version = unicodedata.unidata_version
    print(f"""// SPDX-License-Identifier: MIT
// Written by tools/unicode/make_table.py from Unicode {version} and Hugging Face tokenizers \
{tokenizers.__version__}: do not edit.
#pragma once
#include <cstdint>
#include <string_view>

namespace masquerade::unicode {{

constexpr const char* version = "{version}";
constexpr const char* hugging_face_version = "{tokenizers.__version__}";

struct Fact {{
    enum Flag : std::uint32_t {{""")
    for i, (name, meaning) in enumerate(FLAGS.items()):
        print(f"        {name} = {1 << i},".ljust(27) + f"// {meaning}")
    print("""    };
};

// A range of `length` code points with the same value. `skipped` is the number of code points between the ranges of the
// previous row and of this row.
struct Run {
    std::uint32_t skipped, length, value;
};
struct Stretch {
    std::uint32_t skipped, length;
};
// Each of the `count` code points c = first, first + step, first + 2 * step, ... becomes c + offset.
struct Shift {
    std::uint32_t first, count, step;
    std::int32_t offset;
};
// The code points from `first` on change. `to` lists what each of them becomes, separated by spaces.
struct Change {
    char32_t first;
    std::u32string_view to;
};

// Word characters: letters, marks, digits, and connectors such as the underscore.""")
    header = Header()
    header.numbers("Stretch word_characters", [run[:2] for run in runs({c: 1 for c in POINTS if is_word(c)})])
    print("// The flags of each code point that has any, as BERT's reference tokenizer treats it.")
    header.values("flags", {c: f for c, f in google.flags.items() if f})
    print("// Full lower-case mapping of single code points, without the special form of a sigma at the end of a word.")
    header.numbers("Shift lower", shifts({c: r for c, r in google.lower.items() if c not in longer}))
    header.changes("lower_longer", longer, gap=1)
    print("// One step of canonical decomposition: the parts may decompose further. Hangul syllables are not included.")
    header.changes("decomposition", decomposition, gap=1)
    print("// Code points that decompose into two parts, and that canonical composition (NFC) never creates.")
    header.numbers("Stretch never_composed", [run[:2] for run in runs(excluded)])
    print("// The canonical combining class of each code point whose class is not 0.")
    header.values("combining_classes", classes)
    print("// Exceptions for Hugging Face's library: for its code points, a row here replaces the rows above. The\n"
          "// value 0 means \"no flags\". In the tables of changes, a code point that does not change becomes itself.")
    header.values("hugging_face_flags", other_flags)
    header.numbers("Shift hugging_face_lower", shifts(other_lower))
    header.changes("hugging_face_strip", other_strip, gap=1)
    print(f"""// The 64-bit FNV-1a hash of all numbers above. It lets a test detect changes by hand.
constexpr std::uint64_t table_hash = {header.hash:#x};

}}  // namespace masquerade::unicode""")


main()
