# SPDX-License-Identifier: MIT
"""The beam search of bert4keras' AutoRegressiveDecoder, restated from its rules: the score is the sum of
log(p + 1e-12), whatever the length. When at least `minlen` tokens are written, the search returns as soon as
the best beam ends. Others that do so are dropped, and the width shrinks."""
import itertools

import numpy

from table import BEGIN, END, V, table


def beam_search(logits, width, maxlen, minlen):
    beams = [([], 0.0)]
    for _ in range(maxlen):
        longer = []
        for tokens, score in beams:
            last = (END, BEGIN, *tokens)[-2:]
            x = numpy.array(logits[last], dtype=numpy.float64)
            p = numpy.exp(x - x.max()) / numpy.exp(x - x.max()).sum()
            longer += [(tokens + [c], score + float(numpy.log(p[c] + 1e-12))) for c in range(V)]
        beams = sorted(longer, key=lambda beam: -beam[1])[:width]
        if len(beams[0][0]) >= minlen:
            ended = [tokens[-1] == END for tokens, _ in beams]
            if ended[0]:
                return beams[0]
            beams = [beam for beam, over in zip(beams, ended) if not over]
            width = len(beams)
    return beams[0]


def cases(tables):
    for width, minlen in itertools.product((1, 2, 3, 5), (1, 4)):
        options = {"beams": width, "maxlen": 8, "minlen": minlen}
        found = [beam_search(table(number), width, 8, minlen) for number in range(tables)]
        yield {"options": options, "found": ["".join(map(str, t)) + f" {score:.9g}" for t, score in found]}
