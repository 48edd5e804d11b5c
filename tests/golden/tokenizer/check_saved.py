#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares how ./tokenize and transformers read text, for folders that ./inspect checkpoint --save wrote.

    pip install transformers==5.24.0
    KEEP=DIR tests/tokenizers.sh
    tests/golden/tokenizer/check_saved.py DIR/lines.txt DIR/*.saved

Each folder is loaded by AutoTokenizer and by tokenizers.Tokenizer.from_file; every line must have the ids of
./tokenize --recognise with both. Prints a line a folder; status 1 if one differs.
"""
import pathlib
import subprocess
import sys

from tokenizers import Tokenizer
from transformers import AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[3]


def ours(folder, lines):
    command = [ROOT / "tokenize", "--ids", "--recognise", "--vocab", folder]
    out = subprocess.run(command, input="".join(line + "\n" for line in lines).encode(), capture_output=True, check=True)
    return [[int(i) for i in row.split()] for row in out.stdout.decode().split("\n")[:-1]]


def check(folder, lines):
    theirs = AutoTokenizer.from_pretrained(folder)
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    wrong = 0
    for line, ids in zip(lines, ours(folder, lines)):
        for name, other in (("transformers", theirs(line, add_special_tokens=False)["input_ids"]),
                            ("tokenizers", library.encode(line, add_special_tokens=False).ids)):
            if ids != other:
                wrong += 1
                print(f"  {line!r}: ours {ids}, {name} {other}")
    print(f"{folder.name}: {type(theirs).__name__}, {len(lines)} lines, {wrong} differences")
    return wrong == 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    texts = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("\n")[:-1]
    results = [check(pathlib.Path(folder), texts) for folder in sys.argv[2:]]
    sys.exit(0 if all(results) else 1)
