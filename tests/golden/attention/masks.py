# SPDX-License-Identifier: MIT
"""The masks by name, from their definitions: which keys a query row sees, in which order a text meets them."""

DOCUMENTS = [(9, 7), (4, 5)]  # tokens of A and of B


class Row:
    """A query row: its number among the queries, the keys that it sees, and which of them lie in its own segment.

    A key is ("memory", document) or its number among the key rows. place: of the row in its segment; places: of the keys of
    that segment."""

    def __init__(self, document, place, seen, places, part):
        self.document, self.place, self.seen, self.places, self.part = document, place, seen, places, part


def order_of_target(t):
    """Ranks of the target's tokens: its second half first, in order, and then the rest from its end."""
    half = t // 2
    return [t - half + k if k < half else t - 1 - k for k in range(t)]


def window_of(w, d=1, stride=0, globals_=0):
    def has(i, j):
        away = abs(i - j)
        return (away <= w * d and away % d == 0) or (stride > 0 and away % stride == 0) or i < globals_ or j < globals_
    return has


def rows_of(mask):
    """The query rows of all documents, how many rows queries and keys have, and positions of both."""
    words = {"bert": ("full",), "mlm": ("full",), "lm": ("causal",), "lm-reverse": ("anticausal",), "plm-shuffled": ("causal",),
             "unilm": ("full", "causal", "all"), "prefix-lm": ("full", "causal", "all"), "insertion": ("full", "full", "all"),
             "independent": ("full", "causal", ""), "uniae": ("full", "causal", "first"), "uniae-causal": ("causal", "causal", "first"),
             "window": ("full", window_of(2)), "dilated": ("full", window_of(2, 2)), "global": ("full", window_of(1, globals_=1)),
             "strided": ("causal", window_of(2, stride=3))}
    allows = {"full": lambda i, j: True, "causal": lambda i, j: j <= i, "anticausal": lambda i, j: j >= i}
    rows, first, keys = [], 0, 0
    query_positions, key_positions = [], []

    def own(document, begin, n, rule, before=(), part=0, has=None, firsts=0):
        for i in range(n):
            seen = [j for j in range(n) if allows[rule](i, j) and (has is None or has(i + firsts, j + firsts))]
            if rule == "anticausal":
                seen.reverse()
            rows.append(Row(document, i, list(before) + [begin + j for j in seen], {begin + j: j for j in range(n)}, part))

    for document, (a, b) in enumerate(DOCUMENTS):
        n = a + b
        ranks = order_of_target(b)
        if mask in words:
            said = words[mask]
            if len(said) < 3:
                own(document, first, n, said[0], has=said[1] if len(said) > 1 else None)
                for row in rows[-n:]:
                    row.part = int(row.place >= a)
            else:
                own(document, first, a, said[0])
                others = {"all": range(first, first + a), "first": [first], "": []}[said[2]]
                own(document, first + a, b, said[1], others, 1)
            query_positions += range(n)
            key_positions += range(n)
        elif mask == "unilm-window":
            near = window_of(3)
            for i in range(n):
                seen = [j for j in range(n) if near(i, j) and (j < a if i < a else j <= i)]
                rows.append(Row(document, i, [first + j for j in seen], {}, int(i >= a)))
            query_positions += range(n)
            key_positions += range(n)
        elif mask in ("plm", "plm-query"):
            rank = [-1] * a + ranks
            for i in range(n):
                seen = [j for j in range(n) if (rank[j] <= rank[i] if mask == "plm" else rank[j] < rank[i])]
                seen.sort(key=lambda j: rank[j])
                rows.append(Row(document, i, [first + j for j in seen], {first + j: j for j in range(n)}, int(i >= a)))
            query_positions += range(n)
            key_positions += range(n)
        elif mask == "plm-streams":
            content = [-1 if i < a - b else ranks[i - (a - b)] for i in range(a)]
            for i in range(n):
                query = i - a
                seen = [j for j in range(a) if (content[j] <= content[i] if query < 0 else content[j] < ranks[query])]
                seen.sort(key=lambda j: content[j])
                rows.append(Row(document, i if query < 0 else query, [first + j for j in seen], {first + j: j for j in range(a)},
                                int(i >= a)))
            query_positions += range(n)
            key_positions += range(n)
        elif mask == "block-diffusion":
            # The target is blocks of two tokens; the source ends with the true tokens of all of them but the last.
            clean = min((b - 1) // 2 * 2, a - 1)
            context = a - clean
            for begin in [0, *range(context, a, 2)]:
                own(document, first + begin, context if begin == 0 else min(2, a - begin), "full", range(first, first + begin))
            for begin in range(0, b, 2):
                own(document, first + a + begin, min(2, b - begin), "full", range(first, first + min(context + begin, a)), 1)
            query_positions += range(n)
            key_positions += range(n)
        elif mask == "k-bert":
            # The target is branches of two tokens; branch k hangs on the source's token 1 + k.
            branch = [-1] * a + [k // 2 for k in range(b)]
            entity = [i - 1 if 0 < i <= (b + 1) // 2 else -1 for i in range(a)] + [k // 2 for k in range(b)]
            for i in range(n):
                seen = [j for j in range(n) if branch[i] == branch[j] or
                        ((branch[i] < 0 or branch[j] < 0) and entity[i] >= 0 and entity[i] == entity[j])]
                rows.append(Row(document, i, [first + j for j in seen], {first + j: j for j in range(n)}, int(i >= a)))
            query_positions += range(n)
            key_positions += range(n)
        elif mask == "pseudo-mask":
            # The target is spans of one token each, and then the [MASK]s of these spans.
            spans = (b + 1) // 2
            token = [0] * a + [k + 1 if k < spans else 0 for k in range(b)]
            hidden = [0] * a + [k - spans + 1 if k >= spans else 0 for k in range(b)]
            for i in range(n):
                if hidden[i]:
                    seen = [j for j in range(n) if (not hidden[j] and token[j] < hidden[i]) or hidden[j] == hidden[i]]
                else:
                    seen = [j for j in range(n) if not hidden[j] and token[j] <= token[i]]
                rows.append(Row(document, i, [first + j for j in seen], {first + j: j for j in range(n)}, int(i >= a)))
            query_positions += range(n)
            key_positions += range(n)
        elif mask in ("univae-encoder", "encoder"):
            own(document, keys, a, "full")
            query_positions += range(a)
            key_positions += range(a)
            keys += a
        elif mask in ("univae-lower", "decoder", "univae-upper"):
            own(document, keys, b, "causal", [("memory", document)] if mask == "univae-upper" else [], 1)
            query_positions += range(b)
            key_positions += range(b)
            keys += b
        elif mask == "cross":
            for i in range(b):
                rows.append(Row(document, i, list(range(keys, keys + a)), {}, 1))
            query_positions += range(b)
            key_positions += range(a)
            keys += a
        else:
            raise ValueError(mask)
        first += n
    return rows, query_positions, key_positions


TOKENS = ["bert", "mlm", "lm", "lm-reverse", "unilm", "prefix-lm", "insertion", "independent", "uniae", "uniae-causal", "plm", "plm-query",
          "plm-streams", "block-diffusion", "plm-shuffled"]
BITS = ["k-bert", "pseudo-mask"]
WINDOWS = ["window", "dilated", "global", "strided", "unilm-window"]
PARTS = ["univae-encoder", "univae-lower", "univae-upper", "encoder", "decoder", "cross"]
WHOLE = ["bert", "mlm", "univae-encoder", "encoder"]  # rows that see each other and nothing else
# masks whose rows see themselves and the first rows of an order, the same order for all rows of a segment
PREFIXES = [m for m in TOKENS + PARTS if m not in ("plm-query", "plm-streams", "cross")]
