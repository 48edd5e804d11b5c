# SPDX-License-Identifier: MIT
"""calls.py RUN LINE...: makes the calls of calls.c through python/masquerade.py, and prints the same."""
import json
import sys

import numpy as np

sys.path.insert(0, "python")
import masquerade


def tried(name, work, shown):
    try:
        result = work()
    except masquerade.Error as error:
        print(f"{name}: {2 if isinstance(error, masquerade.Misuse) else 1} {error}")
        return None
    print(f"{name}: {shown(result)}")
    return result


def texts(lines):
    return "".join(line + "/" for line in lines)


def numbers(array):
    return "x".join(map(str, array.shape)) + "".join(" %.17g" % x for x in array.ravel())


folder, lines = sys.argv[1], sys.argv[2:]
run = masquerade.Run.open(folder)
tried("describe", run.describe, lambda of: json.dumps(of, separators=(",", ":"), ensure_ascii=False) + "/")
try:
    z = run.encode(lines)
    tried("decode", lambda: run.decode(z), texts)
    print("encode:", numbers(z))
except masquerade.Error:
    tried("encode", lambda: run.encode(lines), numbers)
tried("reconstruct", lambda: run.generate(lines, reconstruct=True), texts)
tried("generate", lambda: run.generate(lines), texts)
tried("beam", lambda: run.generate(lines, beam=3, n_best=2, scores=True), texts)
tried("samples", lambda: run.generate(count=3, seed=7), texts)
tried("score", lambda: run.score(lines, importance=3), numbers)
tried("score of one", lambda: run.score(lines[:1], importance=3), numbers)
try:
    pairs = run.score_tokens(lines[0])
    print("tokens:", texts(token for token, _ in pairs))
    print("their nats:", numbers(np.array([nats for _, nats in pairs])))
except masquerade.Error:
    tried("score tokens", lambda: run.score_tokens(lines[0]), str)
try:
    maps = run.attention(lines[0])
    for one in maps:
        print("attention", one.path, texts(one.rows), texts(one.columns), numbers(one.p))
    print(f"attention: {len(maps)} maps")
except masquerade.Error:
    tried("attention", lambda: run.attention(lines[0]), str)
tokenizer = run.tokenizer
for line in lines:
    tokens = tokenizer.encode_with_offsets(line)
    tried("detokenize", lambda: tokenizer.decode(tokenizer.encode(line)), lambda text: text + "/")
    position = np.cumsum([0] + [len(c.encode()) for c in line])  # the place of each character in bytes
    tokens[:, 1:] = position[tokens[:, 1:]]
    print("tokenize:", numbers(tokens))
print("vocabulary:", texts(tokenizer.vocabulary))
run.close()
print("vocabulary:", texts(tokenizer.vocabulary))
