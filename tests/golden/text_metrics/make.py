#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden.json anew: the lines of pairs.py and what sacrebleu and rouge-score make of them.

    pip install sacrebleu==2.6.0 rouge-score==0.1.2
    tests/golden/text_metrics/make.py

words: of every line, as 13a and as rouge-score cut it, with a space between.
sets: scores of a set of pairs [begin, end), each pair alone among them; rouge: P, R, F of 1, 2, L, means of
the pairs, 0..1. Characters for rouge-score are a tokenizer of ours: what is not white space.
nearest: the training source nearest to a query and its cosine, by the formula of source_baselines.h.
"""
import collections
import json
import math
import pathlib
import random
import re

import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenize import tokenize
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from pairs import BY_HAND, salads

FILE = pathlib.Path(__file__).resolve().parent / "golden.json"
TYPES = ["rouge1", "rouge2", "rougeL"]


class CharacterTokens:
    def tokenize(self, line):
        return [c for c in line if not c.isspace()]


SCORERS = {"words": RougeScorer(TYPES), "characters": RougeScorer(TYPES, tokenizer=CharacterTokens())}


def bleu(references, hypotheses, tokens):
    metric = sacrebleu.BLEU(tokenize=tokens)
    found = metric.corpus_score(hypotheses, [references])
    report = found.format(signature=str(metric.get_signature()).rsplit("|version:", 1)[0])
    return {"score": found.score, "precisions": found.precisions, "brevity": found.bp,
            "hypothesis": found.sys_len, "reference": found.ref_len, "report": report}


def rouge(scorer, references, hypotheses):
    scores = [scorer.score(r, h) for r, h in zip(references, hypotheses)]
    return [[math.fsum(s[kind][part] for s in scores) / len(scores) for part in range(3)] for kind in TYPES]


def score(pairs, begin, end):
    references, hypotheses = (list(side) for side in zip(*pairs[begin:end]))
    return {
        "range": [begin, end],
        "13a": bleu(references, hypotheses, "13a"),
        "char": bleu(references, hypotheses, "char"),
        "chrf": sacrebleu.CHRF().corpus_score(hypotheses, [references]).score,
        "rouge": {kind: rouge(scorer, references, hypotheses) for kind, scorer in SCORERS.items()},
    }


def nearest(training, queries):
    bags = [collections.Counter(re.findall(r"\w+|[^\w\s]", line.lower())) for line in training]
    having = collections.Counter(word for bag in bags for word in bag)

    def vector(bag):
        return {word: times * (1 + math.log((1 + len(bags)) / (1 + having[word])))
                for word, times in bag.items() if word in having}

    def length(v):
        return math.sqrt(math.fsum(x * x for x in v.values()))

    vectors = [vector(bag) for bag in bags]
    found = []
    for line in queries:
        query = vector(collections.Counter(re.findall(r"\w+|[^\w\s]", line.lower())))
        cosines = [math.fsum(x * v.get(word, 0) for word, x in query.items()) / (length(query) * length(v))
                   if query and v else 0 for v in vectors]
        best = max(range(len(bags)), key=cosines.__getitem__)
        for i, bag in enumerate(bags):  # a tie must be one by construction, not by rounding
            assert i == best or cosines[i] < cosines[best] - 1e-9 or bag == bags[best] or cosines[best] == 0
        found.append([best, cosines[best]])
    return found


def training_lines(random_numbers, count):
    words = "the of Library for files , and reading ( ) writing audio maps data fonts mail x y z q".split()
    return [" ".join(random_numbers.choice(words) for _ in range(random_numbers.randint(0, 12)))
            for _ in range(count)]


def main():
    pairs = BY_HAND + salads(45, 1)
    golden = {"pairs": pairs}
    lines = sorted({line for pair in pairs for line in pair})
    cut = Tokenizer13a()
    golden["words"] = [[line, cut(line.rstrip()), " ".join(tokenize(line, None))] for line in lines]
    whole = [(0, len(pairs)), (0, len(BY_HAND)), (len(BY_HAND), len(pairs)), (len(BY_HAND), len(BY_HAND) + 9)]
    golden["sets"] = [score(pairs, *ends) for ends in whole + [(i, i + 1) for i in range(len(pairs))]]

    random_numbers = random.Random(2)
    training = training_lines(random_numbers, 60)
    training += random_numbers.sample(training, 8)  # for duplicates, the first must be found
    training += [" ".join(reversed(line.split())) for line in random_numbers.sample(training, 4)]
    queries = training_lines(random_numbers, 30) + training[60:] + ["", "nothing known here", "Fonts unknown"]
    golden["nearest"] = {"training": training, "queries": queries, "found": nearest(training, queries)}

    def listed(entries):
        return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]"

    parts = [f'"{key}": {listed(value) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)}'
             for key, value in golden.items()]
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    for of_set in golden["sets"][:3]:
        print(of_set["range"], of_set["13a"]["report"], of_set["chrf"], of_set["rouge"]["words"])


main()
