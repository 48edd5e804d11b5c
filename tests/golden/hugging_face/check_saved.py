#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether transformers makes of a folder that ./inspect saved what ./inspect makes of it. Needs torch and
transformers.

    ./inspect checkpoint MODEL --save OUT --logits OUT.logits <lines.txt
    tests/golden/hugging_face/check_saved.py OUT ...

MODEL is any folder with a BERT, RoFormer or NomicBERT, a golden one beside this file for example. Each OUT is loaded by
AutoModelForMaskedLM, which must neither miss a tensor nor have one too many, and run in float and in double on
the ids and types of OUT.logits, as one padded batch with an attention_mask. Prints the largest
differences of the logits; status 1 where that of float is above 1e-5 of the largest logit (at least 1).
"""
import pathlib
import sys

import torch
from safetensors.numpy import load_file
from transformers import AutoModelForMaskedLM


def logits(folder, dtype, ids, types, mask):
    model, info = AutoModelForMaskedLM.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    wrong = {key: sorted(names) for key, names in info.items() if names}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    model.eval()
    with torch.no_grad():
        return model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[mask.bool()].double()


def check(folder):
    ours = load_file(f"{folder}.logits")
    begin = ours["begin"].astype(int)
    lengths = [int(n) for n in begin[1:] - begin[:-1]]
    ids, types, mask = (torch.zeros(len(lengths), max(lengths), dtype=torch.long) for _ in range(3))
    for b, n in enumerate(lengths):
        rows = slice(begin[b], begin[b + 1])
        ids[b, :n] = torch.from_numpy(ours["ids"][rows].astype(int))
        types[b, :n] = torch.from_numpy(ours["types"][rows].astype(int))
        mask[b, :n] = 1
    found = torch.from_numpy(ours["logits"]).double()
    single, double = (logits(folder, dtype, ids, types, mask) for dtype in (torch.float32, torch.float64))
    largest = max(1.0, double.abs().max().item())
    pairs = (found, single), (found, double), (single, double)
    difference, exact, theirs = ((a - b).abs().max().item() for a, b in pairs)
    print(f"{folder.name}: {len(lengths)} lines, {sum(lengths)} tokens, largest logit {largest:.3g}; ours - theirs "
          f"{difference:.2g} in float, {exact:.2g} from their double (their float: {theirs:.2g})")
    return difference <= 1e-5 * largest  # false where it is not a number


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    results = [check(pathlib.Path(folder)) for folder in sys.argv[1:]]
    sys.exit(0 if all(results) else 1)
