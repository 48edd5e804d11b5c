# SPDX-License-Identifier: MIT
"""Interpolated modified Kneser-Ney, and a model of words on top of it, from their definitions alone:
dictionaries of tuples, recursion, no care for speed. Judges models/scoring/ngram.cpp and models/scoring/word_model.cpp."""
import collections
import math

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


class KneserNey:
    """Chen & Goodman 1999; below the first order, 1 / symbols. A sentence has one BEGIN."""

    def __init__(self, sentences, order, symbols):
        self.order, self.symbols = order, symbols  # symbols: those that can be predicted, END among them
        raw = collections.Counter()
        for sentence in sentences:
            marked = (BEGIN, *sentence, END)
            for n in range(1, order + 1):
                raw.update(marked[i : i + n] for i in range(len(marked) - n + 1))
        before = collections.defaultdict(set)
        for gram in raw:
            before[gram[1:]].add(gram[0])
        self.count = {}
        for gram, times in raw.items():
            if gram != (BEGIN,):
                kept = len(gram) == order or gram[0] == BEGIN
                self.count[gram] = times if kept else len(before[gram])
        self.followers = collections.defaultdict(list)
        for gram, times in self.count.items():
            self.followers[gram[:-1]].append(times)
        self.discounts = [self.discounts_of(n) for n in range(1, order + 1)]

    def discounts_of(self, n):
        times = [sum(len(g) == n and c == k for g, c in self.count.items()) for k in range(5)]
        if 0 in times[1:]:
            return [0.5, 1, 1.5]
        y = times[1] / (times[1] + 2 * times[2])
        found = [k - (k + 1) * y * times[k + 1] / times[k] for k in (1, 2, 3)]
        return found if all(0 < d <= k for k, d in zip((1, 2, 3), found)) else [0.5, 1, 1.5]

    def discount(self, n, count):
        return self.discounts[n - 1][min(count, 3) - 1]

    def probability(self, context, word):
        context = tuple(context)[-(self.order - 1) :] if self.order > 1 else ()
        shorter = self.probability(context[1:], word) if context else 1 / self.symbols
        followers, n = self.followers.get(context), len(context) + 1
        if not followers:
            return shorter
        count = self.count.get((*context, word), 0)
        own = count - self.discount(n, count) if count else 0
        saved = sum(self.discount(n, c) for c in followers)
        return (own + saved * shorter) / sum(followers)

    def log_probabilities(self, sentence):
        marked = (BEGIN, *sentence, END)
        return [math.log(self.probability(marked[:i], marked[i])) for i in range(1, len(marked))]


class WordModel:
    """Words seen twice or more are known; the others are UNKNOWN, spelled byte by byte."""

    def __init__(self, lines, order=5, spelling_order=6):
        count = collections.Counter(word for line in lines for word in line)
        self.known = {word for word, times in count.items() if times >= 2}
        self.words = KneserNey([self.hidden(line) for line in lines], order, len(self.known) + 2)
        self.spelling = KneserNey([word.encode() for word in sorted(count)], spelling_order, 257)
        self.spare = 1 - sum(math.exp(self.spelled(word)) for word in self.known)

    def hidden(self, line):
        return [word if word in self.known else UNKNOWN for word in line]

    def spelled(self, word):
        return sum(self.spelling.log_probabilities(word.encode()))

    def log_probabilities(self, line):
        found = self.words.log_probabilities(self.hidden(line))
        for i, word in enumerate(line):
            if word not in self.known:
                found[i] += self.spelled(word) - math.log(self.spare)
        return found

    def perplexity(self, lines):
        """Of all words and ends; without the unknown words; and their share of the words."""
        events = [(p, word) for line in lines for p, word in zip(self.log_probabilities(line), (*line, END))]
        known = [p for p, word in events if word in self.known or word is END]
        means = [sum(found) / len(found) for found in ([p for p, _ in events], known)]
        unknown = (len(events) - len(known)) / (len(events) - len(lines))
        return [math.exp(-means[0]), math.exp(-means[1]), unknown]
