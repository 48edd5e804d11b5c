# SPDX-License-Identifier: MIT
"""The texts of the golden cases that make.py writes: (kind, text[, repeat])."""

# Words of the vocabulary. Two entries test its reader: one word occurs twice, and the later line counts; one word ends
# with CR.
WORDS = """the un ##want ##ed run ##ning hello Hello world a ab abc ##b ##bc de sh ##arp strasse Stra ##sse
cat ##s cl ##cl mask ##mask sep unk pi 14 10 30 20 ##26 mail e http www example com c Viet viet ##nam ##aa
##aaaa ##aaaaaaaa ##aaaaaaaaaaaaaaaa fi ##fi office of ##fice ##\u00e9 R\u00e9 ##sum resume ##ume istanbul
\u1112\u1161\u11ab ##\u1100\u116e\u11a8 \u03c3\u03b1\u03c2 ##\u03b1\u03c2 ##\u03b1\u03c3 \u043f\u0440\u0438
##\u0432\u0435\u0442 \u4e2d\u6587 ##\u6587 \u0939\u093f ##\u0928\u094d\u0926\u0940 \u0e2a\u0e27 [unused1] ##
### ##[ don ##' cannot the""".split() + ["end\r"]

# Like bert-base-chinese, the vocabulary has no curly quotes, dashes or ellipsis.
NOT_IN_VOCABULARY = set("\u2018\u2019\u201c\u201d\u2013\u2014\u2026")

FORMAT_CONTROLS = "a\u200bb\u200cc\u200dd\u200ee\u200f"
GREEK = "\u03a3\u0391\u03a3 \u0391\u03a3. \u03a3 \u0391\u03a3\u0301 \u0391.\u03a3 \u03b1\u03c3\u00ad\u0391"

# Texts with which every tokenizer must be tested.
EDGES = [
    ("empty", ""),
    ("only spaces", " "),
    ("only spaces", " \t\r\n \u00a0\u3000\u2003 "),
    ("NUL", "a\0b \0 \0cat"),
    ("U+FFFD", "a\ufffdb \ufffd the\ufffd"),
    ("U+FEFF", "\ufeffhello\ufeff world\ufeff"),
    ("U+00AD", "un\u00adwanted \u00ad \u00adrun\u00adning"),
    ("U+200B to 200F", FORMAT_CONTROLS),
    ("U+200B to 200F", "\u200b \u200e\u200f \u200c"),
    ("U+2028", "hello\u2028world\u2029cat"),
    ("U+2028", "\u2028"),
    ("U+0085", "hello\u0085world \u0085 a\u000bb\u000cc\u001cd\u001de\u001ef\u001fg"),
    ("U+3000", "hello\u3000world\u3000\u3000\u4e2d\u3000"),
    ("U+180E", "hello\u180eworld"),
    ("hashes", "##"),
    ("hashes", "###"),
    ("hashes", "##s # ## cat##s ##want#ed"),
    ("special tokens", "[CLS]"),
    ("special tokens", "[MASK]"),
    ("special tokens", "[mask] [Mask] [ MASK ]"),
    ("special tokens", "[UNK]x a[SEP]b[PAD][PAD] [[CLS]] [unused1] [SEP"),
    ("special tokens", "The [MASK]\u0301 \u4e2d[MASK]\u6587 [CLS]hello[SEP] world[SEP]"),
    ("99 letters", "a" * 99),
    ("100 letters", "a" * 100 + " " + "\u0436" * 100),
    ("100 letters, with accents", "e\u0301" * 100),
    ("100 letters, with accents", "\u00c9" * 100),
    ("201 letters", "the " + "a" * 201 + " cat"),
    ("201 letters, with accents", "\u00e9" * 201),
    ("over 100 letters, all alone", "\u4e2d" * 101),
    ("over 100 letters, all alone", "." * 101),
    ("capital sigma", "\u03a3\u03b9\u03b3\u03bc\u03b1 \u03a3 1\u03a3 \u4e2d\u03a3\u4e2d"),
    ("I with a dot", "\u0130stanbul I\u0307stanbul ISTANBUL \u0131stanbul"),
    ("sharp S", "Stra\u00dfe STRASSE \u1e9e stra\u1e9ee"),
    ("ligatures", "\ufb01 o\ufb03ce \ufb00 \u0133 \u01c4 \u01c5 \u01c6"),
    ("full width", "\uff21\uff42\uff43 \uff11\uff12\uff0e\uff15 \uff01 \uff04\uff0b"),
    ("half-width kana with a mark", "\uff76\uff9e \uff8a\uff9f\uff9d"),
    ("kana", "\u30ac\u304b\u3099\u304c \u30d1\u30f3 \u30fc\u3005\u3007\u3105"),
    ("Hangul", "\ud55c\uad6d\uc5b4 \uac00 \uac01 \ud7a3"),
    ("Hangul", "\u1112\u1161\u11ab\uad6d \u3131\u314f \ua960\ud7b0"),
    ("Vietnamese", "Ti\u1ebfng Vi\u1ec7t Nam \u0110\u1ed3ng VI\u1ec6TNAM"),
    ("Thai", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0e19\u0e49\u0e33 \u0e4f"),
    ("Hindi", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0958\u093c\u0964 \u0929"),
    ("Arabic",
     "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u0627\u064b\u060c \u0622\u0623 \u0640\u061f \ufdfa"),
    ("Hebrew", "\u05e9\u05c1\u05dc\u05d5\u05b9\u05dd\u05be\ufb2e\u05f3"),
    ("Russian", "\u041f\u0440\u0438\u0432\u0435\u0442 \u0401\u0436\u0438\u043a \u0419\u043e\u0434"),
    ("emoji", "\U0001f600\U0001f600 cat\U0001f600s \U0001f44d\U0001f3fd \U0001f3fb"),
    ("emoji with ZWJ", "\U0001f468\u200d\U0001f469\u200d\U0001f467 a\u200db"),
    ("emoji with U+FE0F", "\u2764\ufe0f \u2600\ufe0f\ufe0e 1\ufe0f\u20e3"),
    ("flags", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 \U0001f3f4\U000e0067\U000e007f"),
    ("unassigned", "a\u0378b \U0003fffe\uffff \U000e0080"),
    ("U+2CEB0", "a\U0002ceb0b \U00030000 \U0002cea1c"),
    ("compatibility ideographs", "a\uf900b\U0002f800c \ufa0e\ufa70"),
    ("becomes punctuation", "a\u037eb a\u1fefb a\u2260b a\u226eb"),
    ("U+2329", "a\u2329b\u232ac\u3008d"),
    ("curly quotes", "\u201c\u4e2d\u6587\u201d \u2018a\u2019 don\u2019t"),
    ("dashes and an ellipsis", "hello\u2014world\u2013the cat\u2026 \u2026"),
    ("numbers", "3.14 10:30 2026-11-21 1,000 50% 1/2 \u00bd \u00b2 \u0663"),
    ("hyphens", "e-mail un-wanted-ed a--b"),
    ("signs", "C++ c# $5 \u20ac5 5\u00b0 x^2 `a` ~ | < = > a_b \u00a7 \u00bf"),
    ("addresses", "http://www.example.com/a/b?c=d&e=10#the cat@example.com"),
    ("mixed", "\u4e2d\u6587abc123\u4e2d\u6587"),
    ("mixed", "hello\u4e2d\u6587, world\u3002RUNNING\uff0cun\u4e00wanted"),
    ("apostrophes", "don't the cat's 'hello' d'\u00e9t\u00e9"),
    ("accents", "R\u00e9sum\u00e9 re\u0301sume\u0301 \u00c5ngstr\u00f6m \u212b \u1e9b\u0323 \u0344"),
    ("a mark with nothing to stand on", "\u0301 \u0301a \u4e2d\u0301 .\u0301"),
    ("order of marks", "a\u302e\u1715b a\u302e\u0301\u302f \U0001d15f\U0001d165\U0001d16d"),
    ("a duplicate and a CR in the vocabulary", "the end The END"),
    ("case", "HELLO Hello hello hELLO \u0388\u03a9 \u01f0 \u1f88 \u2160 \u24b6"),
    ("very long", "Hello, world! The cat\u2019s un-wanted \u4e2d\u6587; 3.14 na\u00efve. ", 5000),
    ("very long", "\u4e2d\u6587\uff0c", 30000),
    ("invalid UTF-8", b"a\xffb \x80 c\xfe\xfe"),
    ("invalid UTF-8: a character cut short", b"un\xe4\xb8wanted \xe4\xb8\xe4\xb8\xad \xf0\x9f\x98 end\xc3"),
    ("invalid UTF-8: overlong, surrogate, too large",
     b"a\xc0\xafb\xe0\x80\xafc \xed\xa0\x80d \xf4\x90\x80\x80e\xf8"),
]

# Where Google's and Hugging Face's rules give different ids.
RULES_DIFFER = [
    ("difference: 101 letters", "a" * 101),
    ("difference: 101 letters", "\u0436" * 101),
    ("difference: 200 letters", "the " + "a" * 200 + " cat"),
    ("difference: private use", "a\ue000b \uf8ff \U000f0000\U0010fffdc"),
    ("difference: final sigma", GREEK),
    ("difference: U+2B820 to 2B91F", "a\U0002b820b a\U0002b91fb a\U0002b920b"),
    ("difference: marks newer than the library's", "a\u0898b \u07fd \u08cac \U0001e94a"),
    ("difference: a mark that was none", "a\U00011938b"),
    ("difference: marks that are marks no more", "a\u1734b"),
    ("difference: punctuation newer than the library's", "a\u2e43b \u061dc \u2e55a\u2e5c \u2e5d \u0c77"),
    ("difference: punctuation no more", "a\u166db"),
    ("difference: format controls newer than the library's", "a\u08e2b \u0890 \U00013430c"),
    ("difference: cased letters newer than Python's", "a\ua7cbb \U00010d50"),
]

# Texts on which other tokenizers differ, but these two agree.
ALL_RULES_AGREE = [
    ("agreed: a part that matches nothing", "hello ab\u0ea5cat \u0ea5 world"),
    ("agreed: unassigned stays", "a\u0378b \U0001faff\U0001fb00"),
    ("agreed: controls join", "a\u0001b\u007fc \u0080 hello\u0085world"),
    ("agreed: white space", "a\u00a0b\u1680c\u2000d\u200ae\u202ff\u205fg\u3000h\u2028i"),
    ("agreed: cleaned before lower-casing", "A\u200dB\u0301\u200d\u0301C \u0130\u200d"),
    ("agreed: nothing composed", "e\u0301 \u212b \u1fef \uf900 \u0958 \u2126"),
    ("agreed: nothing folded", "\ufb01 \u2460 \u2026 \u00df \uff71 \u33a1 \u2122"),
    ("agreed: full-width letters are letters", "\uff41\uff42\uff43\uff10\uff71\uff72\uff0c"),
    ("agreed: symbols are letters", "a\u20acb \u00a9 \u2192c \u2030 \u2042 \u3012"),
    ("agreed: an accent in a special token", "[C\u0301LS] [mask]"),
]
