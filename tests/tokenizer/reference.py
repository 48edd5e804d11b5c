#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""BERT's reference tokenizer stated again, step by step, with Python's own Unicode functions.

tests/golden/tokenizer/make.py takes its golden cases from here. Run by itself it prints the hashes that
tests/tokenizer/normalise_test.cpp expects: of every code point and of random strings; the C++ side makes the
same strings and hashes its words alike. Takes about half a minute.
"""
import sys
import unicodedata

IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]
# Characters of random strings, besides any code point: letters, marks, spaces, sigmas, punctuation.
COMMON = ("aBz09 .,'\"-"
          "\u03a3\u03c3\u03b1\u0391\u0301\u0323\u00ad\u200b\ufe0f\u302e\u1715\u309b\u0e31\u4e2d\u3000"
          "\u2028\n\u0130\u00df\u1e9b\uac01\ud7a3\u2260\U0001d160\U0001d165\U00016ff0")


def clean(text):
    out = []
    for x in text:
        category = unicodedata.category(x)
        if x in " \t\n\r" or category == "Zs":
            out.append(" ")
        elif x == "\ufffd" or category in ("Cc", "Cf"):
            continue
        elif any(first <= ord(x) <= last for first, last in IDEOGRAPHS):
            out.append(" " + x + " ")
        else:
            out.append(x)
    return "".join(out)


def is_punctuation(x):
    c = ord(x)
    return (33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126
            or unicodedata.category(x).startswith("P"))


def words(text, lower):
    for piece in clean(text).split():
        if lower:
            decomposed = unicodedata.normalize("NFD", piece.lower())
            piece = "".join(x for x in decomposed if unicodedata.category(x) != "Mn")
        yield from "".join(f" {x} " if is_punctuation(x) else x for x in piece).split()


def load_vocabulary(path):
    """Token to id, the line's number; of equal lines the last counts."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        return {line.strip(): i for i, line in enumerate(lines)}


def pieces(word, vocabulary, max_word=200):
    """The longest match from the left; nothing for some part, or too long a word: one [UNK]."""
    if len(word) > max_word:
        return ["[UNK]"]
    out, begin = [], 0
    while begin < len(word):
        prefix = "##" if begin > 0 else ""
        for end in range(len(word), begin, -1):
            if prefix + word[begin:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        out.append(prefix + word[begin:end])
        begin = end
    return out


def fnv(h, data):
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def hash_words(texts, lower):
    h = 0xCBF29CE484222325
    for text in texts:
        h = fnv(h, (" ".join(words(text, lower)) + "\n").encode())
    return h


def every_code_point():
    for c in range(0x110000):
        if not 0xD800 <= c <= 0xDFFF:
            yield "Ab" + chr(c) + "?De"


def random_texts(count):
    state = 1
    for _ in range(count):
        text = ""
        for _ in range(24):
            state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            draw = state >> 33
            c = draw // 8 % 0x30000
            if draw % 8 == 0 and not 0xD800 <= c <= 0xDFFF:
                text += chr(c)
            else:
                text += COMMON[draw // 8 % len(COMMON)]
        yield text


if __name__ == "__main__":
    print("Unicode", unicodedata.unidata_version, "common", len(COMMON), file=sys.stderr)
    for lower in (True, False):
        print("lower" if lower else "cased", f"every {hash_words(every_code_point(), lower):#x}",
              f"random {hash_words(random_texts(60000), lower):#x}")
