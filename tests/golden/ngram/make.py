#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden.json anew: lines of made-up words, and what kneser_ney.py, the definition, makes of them.

    tests/golden/ngram/make.py                  keeps what KenLM said
    tests/golden/ngram/make.py .../bin/lmplz    asks KenLM's lmplz, too

orders: discounts and log p, in nats, of every word and end of the held-out lines; a word of theirs that the
text lacks is the symbol <unk>, with a count of 0, as in KenLM.
words: the model that spells unknown words; log p of lines, and perplexities.
kenlm: log10 p by order.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from kneser_ney import UNKNOWN, KneserNey, WordModel

FILE = pathlib.Path(__file__).resolve().parent / "golden.json"
ORDERS = (1, 2, 3, 5)
HEADS = "library tool module plugin headers tests game server".split()
THINGS = "files images audio kernels maps fonts mail graphs sockets tables строки maße 名".split()
USES = "reading writing editing drawing sorting sending".split()


def invented(random_numbers):
    return "".join(random_numbers.choice("abcdeioxßж") for _ in range(random_numbers.randint(1, 9)))


def line(random_numbers):
    pick = lambda words: words[min(int(random_numbers.expovariate(0.5)), len(words) - 1)]  # noqa: E731
    words = [pick(HEADS), "for", pick(USES), pick(THINGS)]
    if random_numbers.random() < 0.4:
        words += ["and", pick(THINGS)]
    if random_numbers.random() < 0.3:
        words[1:1] = ["of", invented(random_numbers)]
    if random_numbers.random() < 0.2:
        words += ["in", invented(random_numbers)]
    return words if random_numbers.random() < 0.98 else []


def scores(model, lines):
    return [[float(f"{p:.15g}") for p in model.log_probabilities(one)] for one in lines]


def kenlm(lmplz, text, held_out, order):
    with tempfile.TemporaryDirectory() as folder:
        asked = [lmplz, "-o", str(order), "-S", "100M", "-T", folder, "--discount_fallback"]
        arpa = subprocess.run(asked, input="".join(" ".join(words) + "\n" for words in text), text=True,
                              capture_output=True, check=True).stdout
    logs, backoffs, n = {}, {}, 0
    for entry in arpa.splitlines():
        if entry.startswith("\\"):
            n = int(entry[1]) if entry[1].isdigit() else 0
        elif n and entry:
            fields = entry.split("\t")
            gram = tuple(fields[1].split(" "))
            logs[gram], backoffs[gram] = float(fields[0]), float(fields[2]) if len(fields) > 2 else 0

    def log10(context, word):
        if (*context, word) in logs:
            return logs[(*context, word)]
        return backoffs.get(context, 0) + log10(context[1:], word)

    found = []
    for words in held_out:
        marked = ("<s>", *words, "</s>")
        found.append([round(log10(marked[max(0, i - order + 1) : i], marked[i]), 7)
                      for i in range(1, len(marked))])
    return found


def main():
    random_numbers = random.Random(1)
    text, held_out = ([line(random_numbers) for _ in range(n)] for n in (240, 16))
    types = {word for words in text for word in words}
    hidden = [[word if word in types else UNKNOWN for word in words] for words in held_out]
    golden = {"text": [" ".join(words) for words in text]}
    golden["held_out"] = [" ".join(words) for words in held_out]
    golden["orders"] = {}
    for order in ORDERS:
        model = KneserNey(text, order, len(types) + 2)
        golden["orders"][order] = {"discounts": model.discounts, "log_probabilities": scores(model, hidden)}
    model = WordModel(text)
    golden["words"] = {
        "known": len(model.known),
        "log_probabilities": [float(f"{sum(one):.15g}") for one in scores(model, held_out)],
        "perplexity": model.perplexity(held_out),
    }
    if len(sys.argv) > 1:
        golden["kenlm"] = {order: kenlm(sys.argv[1], text, hidden, order) for order in (3, 5)}
    elif FILE.exists():
        golden["kenlm"] = json.loads(FILE.read_text())["kenlm"]
    body = ",\n".join(f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in golden.items())
    FILE.write_text("{\n" + body + "\n}\n")
    for order, made in golden["orders"].items():
        print(order, made["discounts"])


main()
