# SPDX-License-Identifier: MIT
"""Two judges of what a code point is to a BERT tokenizer: the reference (reference.py) and the Hugging Face library.
tools/unicode/make_table.py writes down what they say.

Each has flags(c), and lower(c), strip(c) and both(c): the code points that c becomes when it is lower-cased,
when it is decomposed (NFD) and stripped of marks, and when both is done.
"""
import sys
import unicodedata

from reference import IDEOGRAPHS, is_punctuation
from tokenizers import normalizers, pre_tokenizers

CONTROL, SPACE, IDEOGRAPH, PUNCTUATION, MARK, CASED, IGNORABLE, NONSTARTER = (1 << i for i in range(8))
SYLLABLES = range(0xAC00, 0xD7A4)
LETTERS_IN_SHAPES = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]
POINTS = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]


def inside(c, ranges):
    return any(first <= c <= last for first, last in ranges)


def is_word(c):
    """\\w of regular expressions (Unicode Technical Standard 18, Annex C): Alphabetic, marks, decimal digits,
    connectors, join controls. Alphabetic is not in unicodedata; it is the letters, the letter numbers, some marks,
    and letters in circles and squares."""
    category = unicodedata.category(chr(c))
    return (category[0] in "LM" or category in ("Nl", "Nd", "Pc") or c in (0x200C, 0x200D)
            or inside(c, LETTERS_IN_SHAPES))


class Google:
    """The reference, by Python's own functions; a code point by itself."""

    def flags(self, c):
        x = chr(c)
        category = unicodedata.category(x)
        flags = 0
        if c in (0, 0xFFFD) or (category in ("Cc", "Cf") and x not in "\t\n\r"):
            flags |= CONTROL
        if x.isspace():
            flags |= SPACE
        if inside(c, IDEOGRAPHS):
            flags |= IDEOGRAPH
        if is_punctuation(x):
            flags |= PUNCTUATION
        if category == "Mn":
            flags |= MARK
        # unicodedata does not have the properties Cased and Case_Ignorable. The way in which a final sigma is
        # lower-cased shows them.
        if (x + "\u03a3").lower().endswith("\u03c2"):
            flags |= CASED
        elif ("A" + x + "\u03a3").lower().endswith("\u03c2"):
            flags |= IGNORABLE
        if all(map(unicodedata.combining, unicodedata.normalize("NFD", x))):
            flags |= NONSTARTER
        return flags

    def lower(self, c):
        return [ord(x) for x in chr(c).lower()]

    def strip(self, c):
        return [ord(x) for x in unicodedata.normalize("NFD", chr(c)) if unicodedata.category(x) != "Mn"]

    def both(self, c):
        """What the reference does: lower case, decomposition, marks dropped."""
        decomposed = unicodedata.normalize("NFD", chr(c).lower())
        return [ord(x) for x in decomposed if unicodedata.category(x) != "Mn"]


class HuggingFace:
    """The library, asked; a code point between letters, so that nothing is trimmed."""

    def __init__(self, google):
        def bert(**switches):
            off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
            return normalizers.BertNormalizer(**{**off, **switches})
        self.google = google
        self.cleaner = bert(clean_text=True)
        self.spacer = bert(handle_chinese_chars=True)
        self.stripper = bert(strip_accents=True)
        self.lowerer = bert(lowercase=True)
        self.together = bert(strip_accents=True, lowercase=True)
        self.splitter = pre_tokenizers.BertPreTokenizer()
        self.decompose = normalizers.NFD().normalize_str
        # One mark of each combining class, which must be a mark that the library sorts: its Unicode data is older than
        # Python's.
        marks = {1: "\u0334"}
        for c in POINTS:
            if unicodedata.combining(chr(c)) and self.decompose(chr(c) + marks[1]) == marks[1] + chr(c):
                marks.setdefault(unicodedata.combining(chr(c)), chr(c))
        self.marks = sorted(marks.items())
        for (_, first), (_, second) in zip(self.marks, self.marks[1:]):
            assert self.decompose(second + first) == first + second

    def ask(self, normalizer, c):
        """What becomes of the code point."""
        text = normalizer.normalize_str(f"ab{chr(c)}de")
        assert text.startswith("ab") and text.endswith("de")
        alone = normalizer.normalize_str(chr(c))
        assert alone == text[2:-2]
        return alone

    def combining_class(self, c):
        """By how it is sorted among marks of every class; 0 for a starter."""
        decompose = self.decompose
        (_, lowest), (_, highest) = self.marks[0], self.marks[-1]
        x = chr(c)
        if decompose(x + lowest) != lowest + x and decompose(highest + x) != x + highest:
            return 0
        equal = [k for k, m in self.marks if decompose(x + m) == x + m and decompose(m + x) == m + x]
        assert len(equal) == 1
        return equal[0]

    def flags(self, c):
        x = chr(c)
        flags = self.google.flags(c) & (CASED | IGNORABLE)
        cleaned = self.ask(self.cleaner, c)
        pieces = [p for p, _ in self.splitter.pre_tokenize_str(f"ab{x}de")]
        assert cleaned in ("", " ", x) and pieces in (["ab", "de"], ["ab", x, "de"], [f"ab{x}de"])
        assert cleaned != " " or pieces == ["ab", "de"]
        if cleaned == "":
            flags |= CONTROL
        if pieces == ["ab", "de"]:
            flags |= SPACE
        if pieces == ["ab", x, "de"]:
            flags |= PUNCTUATION
        spaced = self.ask(self.spacer, c)
        assert spaced in (x, f" {x} ")
        if spaced != x:
            flags |= IDEOGRAPH
        if self.ask(self.stripper, c) == "":
            flags |= MARK
        if all(self.combining_class(ord(y)) for y in self.decompose(x)):
            flags |= NONSTARTER
        return flags

    def lower(self, c):
        return [ord(x) for x in self.ask(self.lowerer, c)]

    def strip(self, c):
        return [ord(x) for x in self.ask(self.stripper, c)]

    def both(self, c):
        return [ord(x) for x in self.ask(self.together, c)]


def check(judge, flags_of, lower, strip):
    """That the tables, one after the other and in either order, are what the judge does in one go."""
    def lowered(points):
        return [x for c in points for x in lower.get(c, [c])]

    def stripped(points):
        return [x for c in points if not flags_of[c] & MARK for x in strip.get(c, [c])]

    for c in POINTS:
        flags = flags_of[c]
        if flags & SPACE:
            assert not flags & ~(CONTROL | SPACE)
            continue
        if c in SYLLABLES:
            assert flags == 0 and c not in lower
            s = c - 0xAC00
            jamo = [0x1100 + s // 588, 0x1161 + s // 28 % 21] + ([0x11A7 + s % 28] if s % 28 else [])
            assert judge.strip(c) == judge.both(c) == jamo
            continue
        result = judge.both(c)
        assert stripped(lowered([c])) == lowered(stripped([c])) == result, hex(c)
        # A word boundary shows in the character itself, or in the character that it becomes.
        kinds = {flags_of[r] & (CONTROL | SPACE | IDEOGRAPH) for r in result}
        assert kinds <= {flags & (CONTROL | IDEOGRAPH)}, hex(c)
        if any((flags_of[r] | flags) & PUNCTUATION for r in result):
            assert len(result) == 1, hex(c)
