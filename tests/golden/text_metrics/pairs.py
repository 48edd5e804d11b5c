# SPDX-License-Identifier: MIT
"""Lines to score, (reference, hypothesis): by hand, what tokenizers and scores trip over; and word salads."""
import random

BY_HAND = [
    # equal, nearly equal, far apart
    ("the quick brown fox jumps over the lazy dog", "the quick brown fox jumps over the lazy dog"),
    ("The quick brown fox jumps over the lazy dog.", "the quick brown fox jumps over the lazy dog"),
    ("library for reading audio files", "library for writing audio files"),
    ("library for reading audio files", "tools that draw maps"),
    ("a library for reading audio files", "audio files reading for library a"),
    ("library - headers", "headers - library"),
    # lengths
    ("", ""),
    ("", "something out of nothing"),
    ("something out of nothing", ""),
    (" ", "\t"),
    ("word", "word"),
    ("word", "Word"),
    ("word", "other"),
    ("two words", "two words"),
    ("three short words", "three short words"),
    ("exactly four words here", "exactly four words here"),
    ("one", "one and then a great many words that nobody asked for at all"),
    ("a rather long line of which the hypothesis keeps only the end", "the end"),
    ("a rather long line of which the hypothesis keeps only the end", "a rather long line"),
    ("first second third fourth fifth", "first third second fifth fourth"),
    # repetition, which clipping is about
    ("the cat is on the mat", "the the the the the the the"),
    ("the the the the", "the"),
    ("a b a b a b", "a b a b"),
    ("a b a b", "b a b a b a b a"),
    ("to be or not to be", "to be to be to be"),
    # punctuation
    ("Hello, world!", "Hello , world !"),
    ("Hello, world!", "Hello world"),
    ("It's the user's files, isn't it?", "Its the users files , is n't it"),
    ("state-of-the-art text-to-speech", "state of the art text to speech"),
    ("C++ and C# (and F#)", "C ++ and C # ( and F # )"),
    ("read/write access to /dev/null", "read / write access to / dev / null"),
    ("wait... what?!", "wait ... what ? !"),
    ("a.b.c", "a . b . c"),
    ("e.g. this, i.e. that", "e. g. this , i. e. that"),
    (".,.,", ". , . ,"),
    (",,start", "end.."),
    ("\"quoted\" 'single' `back`", "\" quoted \" ' single ' ` back `"),
    ("[a] {b} <c> |d| ~e^ _f_", "a b c d e f"),
    ("user@example.org: 50% off & more; $5=5*1", "user @ example.org : 50 % off and more ; $ 5 = 5 * 1"),
    ("back\\slash", "back \\ slash"),
    # numbers
    ("1,000.5 bytes in 3.14 seconds", "1,000.5 bytes in 3.14 seconds"),
    ("1,000.5 bytes in 3.14 seconds", "1 , 000 . 5 bytes in 3 . 14 seconds"),
    ("version 2.0, released 1999-12-31.", "version 2.0 , released 1999 - 12 - 31 ."),
    ("costs 5. Then 6, then 7", "costs 5 . Then 6 , then 7"),
    ("x86-64 and i386-pc 4-way 10-", "x86 -64 and i386-pc 4 - way 10 -"),
    (".5 and ,5 and 5. and 5,", "0.5 and 5 and 5.0"),
    ("-5 degrees to 5-6", "- 5 degrees to 5 - 6"),
    ("v1.2.3,4", "v1.2.3 ,4"),
    # what mteval reads or drops
    ("Tom &amp; Jerry say &quot;hi&quot;", "Tom & Jerry say \"hi\""),
    ("1 &lt; 2 &gt; 0", "1 < 2 > 0"),
    ("&amp;lt; is read twice", "&lt; is read once"),
    ("&amp;quot; is not", "&quot; is not"),
    ("&apos;none&apos; &nbsp; &#39;", "'none' '"),
    ("a <skipped> part", "a part"),
    ("a <skip<skipped>ped> part", "a <skipped> part"),
    ("broken-\nline and\nanother", "brokenline and another"),
    ("ends in a hyphen-\n", "ends in a hyphen-"),
    # white space
    ("  many   spaces\there ", "many spaces here"),
    ("no\u00a0break\u2003em\u3000ideographic", "no break em ideographic"),
    ("zero\u200bwidth joins", "zerowidth joins"),
    ("line\u2028separator \u0085next", "line separator next"),
    ("unit\u001fseparator", "unit separator"),
    # letters beyond ASCII
    ("naïve café résumé", "naive cafe resume"),
    ("Größe der Maße, ÄÖÜ", "größe der maße, äöü"),
    ("Δοκιμή ΣΊΣΥΦΟΣ", "δοκιμή σίσυφος"),
    ("быстрая лиса, 5.", "Быстрая лиса , 5 ."),
    ("\u0130stanbul and 300 \u212aelvin", "istanbul and 300 kelvin"),
    ("ＦＵＬＬ width １２３", "FULL width 123"),
    ("e\u0301 combined", "é combined"),
    ("«quotes» – dashes — and… “more”", "\"quotes\" - dashes - and ... \"more\""),
    ("été.été,été", "été . été , été"),
    ("rocket 🚀 launch 🎉🎉", "rocket 🚀 launch 🎉"),
    ("👩\u200d💻 codes", "👩 codes"),
    ("🚀.🚀,5", "🚀 . 🚀 ,5"),
    # Chinese: sentences, couplets, mixed
    ("今天天气很好", "今天天气很好"),
    ("今天天气很好", "今天的天气不好"),
    ("春风又绿江南岸", "明月何时照我还"),
    ("春风又绿江南岸", "春风又绿江南"),
    ("花开花落花满天", "花花花花花花花"),
    ("一，二，三。", "一 ， 二 ， 三 。"),
    ("用 Python 3.11 读取文件", "用Python 3.11读取 文件"),
    ("", "无中生有"),
    ("有而无", ""),
    ("人", "人"),
    ("日本語のテキスト", "日本のテキスト"),
]


def salad(random_numbers, words):
    pick = lambda: words[min(int(random_numbers.expovariate(0.15)), len(words) - 1)]  # noqa: E731
    return [pick() for _ in range(random_numbers.randint(0, 14))]


def changed(random_numbers, line, words):
    """The line with words dropped, moved, repeated and exchanged."""
    result = []
    for word in line:
        roll = random_numbers.random()
        if roll < 0.1:
            continue
        result.append(random_numbers.choice(words) if roll < 0.25 else word)
        if roll > 0.92:
            result.append(word)
    if len(result) > 3 and random_numbers.random() < 0.5:
        cut = random_numbers.randrange(len(result))
        result = result[cut:] + result[:cut]
    return result


def salads(count, seed):
    random_numbers = random.Random(seed)
    words = ("the of a library for files , and . - reading 2.5 1,000 (GTK+) it's x86-64 Tools data/maps é 名 "
             "строка").split()
    signs = "春夏秋冬风花雪月山水天地人，。 a1"
    pairs = []
    for i in range(count):
        alphabet, joint = (signs, "") if i % 3 == 2 else (words, " ")
        line = salad(random_numbers, alphabet)
        pairs.append((joint.join(line), joint.join(changed(random_numbers, line, alphabet))))
    return pairs
