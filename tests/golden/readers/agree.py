#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares our readers of safetensors and JSON with the safetensors package and Python's json on mutated files.

    pip install safetensors==0.8.0
    make build/release/libmasquerade.a
    tests/golden/readers/agree.py [--seed 1] [--files 2000] [--keep DIR] [--library FILE]

Small valid files of every dtype, ranks 0 to 5, empty tensors, metadata and odd names are broken in one to three places, with
the length of a header mostly put right. Both readers must accept or refuse alike, and read the same. Prints the counts, and the
differences by class; docs/results/checkpoints.md gives the reason for each class. Status 1 if a difference belongs to none.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

import safetensors

ROOT = pathlib.Path(__file__).resolve().parents[3]
BITS = {"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64,
        "I64": 64, "F64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
        "F8_E5M2FNUZ": 8, "C64": 64}
SHAPES = [[], [1], [3], [0], [2, 3], [0, 4], [4, 0], [2, 1, 3], [1, 2, 1, 2], [2, 0, 1, 3], [1, 2, 1, 2, 2], [1, 0, 2, 1, 1],
          [0, 2**40], [2**62, 0]]
NAMES = ["a", "weight", "", "layer.0/b", "\u00e9", "\u6f22", "\U0001d11e", "with space", 'quote"', "back\\slash", "tab\t", "nul\0", "__metadata",
         "n" * 300]
# Texts that may stand where a JSON value is expected, valid and invalid ones.
LITERALS = ["0", "-0", "1", "-1", "1.0", "1e0", "01", "+1", "1.", ".5", "1e999", "-1e999", "1e-999", "9223372036854775807",
            "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809", "4611686018427387904",
            "1" + "0" * 400, "1" + "0" * 5000, "NaN", "Infinity", "-Infinity", "nan", "null", "true", "false", "True", '""', '"1"', '"F32"',
            '"\\u0046\\u0033\\u0032"', '"\\ud800"', '"\\ud834\\udd1e"', '"\\udd1e\\ud834"', '"\\x41"', '"\\u12"', '"\t"', '"\x7f"', "'a'", "[]", "{}",
            "[0]", "[[0]]", "[0,4]", "[0,]", "{,}", '{"F32":null}', '{"a":1,"a":2}', "0x10", "1_000", "//", "/**/1", "", "0.1", "-0.0",
            "123456789.123456789e-7", "5e-324", "1.7976931348623157e308", "1.7976931348623159e308"]
PLAIN = ["0", "-0", "7", "18446744073709551616", "1e-999", "0.1", "-0.0", "5e-324", "null", "true", '""', '"F16"', "[]", "{}", "[0,4]", '{"a":[1]}',
         '"\\ud834\\udd1e"', '"\\u0000\\/"']
ODD_BYTES = [b"\0", b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xef\xbb\xbf", b"\xc2\xa0", b"\x0b",
             b"\x0c", b"\x1f", b"\x7f", b"\xe2\x80\xa8", b" ", b"\n", b"\t\r"]


def damaged(r, data):
    """Bytes with one place broken."""
    at = r.randrange(len(data) + 1)
    kind = r.randrange(12)
    if kind == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ 1 << r.randrange(8)]) + data[at + 1:]
    if kind == 1:
        return data[:at] + data[at + r.randrange(1, 4):]
    if kind == 2:
        return data[:at] + bytes([r.randrange(256)]) + data[at:]
    if kind == 3:
        return data[:at] + r.choice(ODD_BYTES) + data[at:]
    if kind == 4:
        return data[:at] + r.choice(b"{}[],:\"\\0123456789.-+eE ").to_bytes(1, "little") + data[at + r.randrange(2):]
    if kind == 5:
        end = at + r.randrange(1, 12)
        return data[:end] + data[at:]
    if kind == 6:
        return data[:at]
    places = [m.span() for m in re.finditer(rb'-?\d+|"[^"]*"|null|true|false', data)]
    if not places:
        return data
    begin, end = r.choice(places)
    return data[:begin] + r.choice(r.choice([LITERALS, PLAIN])).encode() + data[end:]


def around(r, text):
    """A text of JSON with something before or after it."""
    before = [b"\xef\xbb\xbf", b" ", b"\n\t", b"\0", b"\xff\xfe", b"{}", b"\xc2\xa0"]
    after = [b" ", b"   \n", b"\t\r\n", b"\0", b"\0\0\0\0", b"\0 }x", b"x", b"{}", b",", b"\x1a", b"\xef\xbb\xbf", b"\xff", b"//"]
    return r.choice(before) + text if r.random() < 0.35 else text + r.choice(after)


# ---- safetensors: a header is a list of names and entries, an entry a list of keys and texts of JSON ----

def said(value):
    return json.dumps(value, ensure_ascii=False)


def tensors(r):
    """Entries and the data of a valid file; half of the shapes are ones that F4 and F6 can have, too."""
    entries, data = [], b""
    for name in r.sample(NAMES, r.randrange(1, 5)):
        dtype, shape = r.choice(list(BITS)), r.choice(SHAPES)
        count = 1
        for size in shape:
            count *= size
        if count * BITS[dtype] % 8:
            shape, count = [2, 2, 2], 8
        bytes_ = r.randbytes(count * BITS[dtype] // 8)
        entries.append([name, [["dtype", said(dtype)], ["shape", said(shape)], ["data_offsets", said([len(data), len(data) + len(bytes_)])]]])
        data += bytes_
    if r.random() < 0.5:
        entries.insert(r.randrange(2), ["__metadata__", [["format", '"pt"'], ["\u00e9", '"\\u00e9\\n"']]])
    return entries, data


def header_of(entries):
    def whole(entry):
        return entry if isinstance(entry, str) else "{" + ",".join(said(k) + ":" + v for k, v in entry) + "}"
    return ("{" + ",".join(said(name) + ":" + whole(entry) for name, entry in entries) + "}").encode("utf-8", "surrogatepass")


def changed_numbers(r, text):
    """A shape or offsets with one number made another, one more or one less."""
    try:
        numbers = [str(x) for x in json.loads(text)]
    except (ValueError, TypeError):
        return text
    at = r.randrange(len(numbers) + 1)
    kind = r.randrange(5)
    if kind == 0 or at == len(numbers):
        numbers.insert(at, r.choice(["0", "1", "2"] + LITERALS))
    elif kind == 1:
        del numbers[at]
    elif kind == 2:
        numbers[at] = r.choice(LITERALS)
    elif kind == 3 and re.fullmatch(r"-?\d{1,30}", numbers[at]):
        numbers[at] = str(int(numbers[at]) + r.choice([-1, 1, 4, 8]))
    else:
        r.shuffle(numbers)
    return "[" + ",".join(numbers) + "]"


def broken_entries(r, entries):
    kind = r.randrange(12)
    at = r.randrange(len(entries))
    name, entry = entries[at]
    if kind == 0:
        entries.insert(r.randrange(len(entries) + 1), [name, entry])  # a name that occurs twice
    elif kind == 1:
        r.shuffle(entries)
    elif kind == 2:
        entries[at][0] = r.choice(NAMES + ["__metadata__"])
    elif kind == 3:
        entries[at][1] = r.choice(LITERALS + ['["F32",[1],[0,4]]'])
    elif kind == 4 and not isinstance(entry, str):
        entries[at][1] = "[" + ",".join(v for _, v in entry) + "]"
    elif isinstance(entry, str) or not entry:
        return
    else:
        field = r.randrange(len(entry))
        key, value = entry[field]
        if kind == 5:
            entry.insert(r.randrange(len(entry) + 1), [key, value])  # a key that occurs twice
        elif kind == 6:
            del entry[field]
        elif kind == 7:
            deep = r.choice([3, 60, 62, 63, 100, 124, 126, 140])
            entry.insert(field, ["x", r.choice(["[" * deep + "]" * deep, '{"x":' * deep + "1" + "}" * deep, r.choice(LITERALS), r.choice(PLAIN)])])
        elif kind == 8:
            entry[field][1] = r.choice(LITERALS)
        elif key == "dtype":
            entry[field][1] = said(r.choice(list(BITS) + ["F33", "f32", "C128", "I4", "", "float32", "F32 "]))
        else:
            entry[field][1] = changed_numbers(r, value)


def tensor_file(r, own):
    """A valid file, broken in one to three places."""
    if r.random() < 0.1:
        return damaged(r, own)
    entries, data = tensors(r)
    places = r.choice([1, 1, 2, 3])
    for _ in range(places):
        if r.random() < 0.6:
            broken_entries(r, entries)
    header = header_of(entries)
    for _ in range(places):
        if r.random() < 0.3:
            header = damaged(r, header)
    if r.random() < 0.15:
        header = around(r, header)
    if r.random() < 0.1:
        data = r.choice([damaged(r, data), data + b"x", data[:-1], b""])
    length = len(header)
    if r.random() < 0.06:
        length = r.choice([0, 1, length - 1, length + 1, len(header) + len(data) + 1, 100_000_001, 2**63, 2**64 - 1, 2**64 - 8])
    whole = struct.pack("<Q", length) + header + data
    return whole[:r.randrange(len(whole))] if r.random() < 0.04 else whole


# ---- JSON ----

def value(r, depth=0):
    kind = r.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return json.dumps(r.choice([0, -1, 7, 2**63, 2**64 - 1, -2**63, 0.1, 1e300, -2.5e-7, 5e-324, r.random(), r.getrandbits(64)]))
    if kind < 5:
        return json.dumps(r.choice(NAMES), ensure_ascii=r.random() < 0.5)
    if kind == 5:
        return r.choice(["null", "true", "false", "[]", "{}"])
    if kind == 6:
        return "[" + r.choice([",", ", ", ",\n"]).join(value(r, depth + 1) for _ in range(r.randrange(5))) + "]"
    return "{" + ",".join(json.dumps(n) + ":" + value(r, depth + 1) for n in r.sample(NAMES, r.randrange(5))) + "}"


def json_file(r, _):
    text = ('{"list":' + value(r) + ',"object":{"x":' + value(r) + '},"text":' + value(r) + "}").encode()
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        kind = r.random()
        if kind < 0.7:
            text = damaged(r, text)
        elif kind < 0.85:
            text = around(r, text)
        elif kind < 0.93:
            deep = r.choice([3, 60, 62, 63, 64, 65, 200, 5000])
            text = r.choice([b"[" * deep + text + b"]" * deep, b'{"a":' * deep + text + b"}" * deep])
        elif kind < 0.96:
            text = text.decode("utf-8", "ignore").encode(r.choice(["utf-16", "utf-16-le", "utf-32", "latin-1"]), "ignore")
        else:
            text = text.replace(b'"x":', b'"x":1,"x":')
    return text


# ---- what the references say; None: refused ----

def reference_tensors(path):
    data = path.read_bytes()
    try:
        read = safetensors.deserialize(data)
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata() or {}
    except Exception as error:  # pyo3 has classes of its own
        return None, str(error)
    return {"metadata": metadata, "tensors": {name: [t["dtype"], t["shape"], list(t["data"])] for name, t in read}}, ""


def reference_json(path):
    try:
        return {"value": json.loads(path.read_bytes().decode("utf-8"))}, ""
    except (ValueError, RecursionError) as error:
        return None, f"{type(error).__name__}: {error}"


# ---- the same value? ----

def same_tensors(ours, theirs):
    if ours["metadata"] != theirs["metadata"] or ours["tensors"].keys() != theirs["tensors"].keys():
        return False
    for name, (dtype, shape, data) in theirs["tensors"].items():
        mine = ours["tensors"][name]
        described = [mine["dtype"], mine["shape"]] if "dtype" in mine else mine["unreadable"]
        if mine["bytes"] != data or described not in ([dtype, shape], f"{dtype} ({','.join(map(str, shape))})"):
            return False
    return True


def same_json(a, b):
    """Equal with types; an integer beyond 64 bits is the nearest double with us."""
    if isinstance(b, int) and not isinstance(b, bool) and not -2**63 <= b < 2**64:
        return isinstance(a, float) and a == float(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_json(a[k], b[k]) for k in a)
    return str(a) == str(b)  # -0.0 is not 0.0


# ---- classes of differences: who accepts, what the one who refuses says, and whether traits() must see the cause ----

SEEN = True
CLASSES = {
    "safetensors": [
        ("a name or key twice in one object", "theirs", "twice in one object", SEEN),
        ("deeper than 64", "theirs", "nests lists and objects deeper than 64", SEEN),
        ("an entry, a dtype or __metadata__ in another form than the format's", "theirs",
         "is described by a list of 3|has the unknown dtype an object|__metadata__ is null"),
        ("an empty tensor whose other sizes have a product beyond 63 bits", "theirs", "more than any file can hold"),
        ("our own checksum", "theirs", "its bytes add up to the checksum"),
        ("a dtype that nobody knows", "ours", "unknown variant"),
    ],
    "json": [
        ("a key twice in one object", "theirs", "twice in one object", SEEN),
        ("deeper than 64", "theirs", "nests lists and objects deeper than 64", SEEN),
        ("NaN and Infinity", "theirs", "cannot be read", SEEN),
        ("half of a surrogate pair", "theirs", "cannot be read", SEEN),
        ("a number beyond double", "theirs", "larger than any that can be held", SEEN),
        ("a byte order mark", "ours", "Unexpected UTF-8 BOM"),
    ],
}


def traits(data):
    """Classes that a text of JSON belongs to, as Python's reader sees it."""
    found = set()

    def pairs(items):
        if len(items) != len(dict(items)):
            found.update({"a key twice in one object", "a name or key twice in one object"})
        return dict(items)

    def walk(x, depth):
        if isinstance(x, (list, dict)):
            if depth == 64:
                found.add("deeper than 64")
            for part in [*x.keys(), *x.values()] if isinstance(x, dict) else x:
                walk(part, depth + 1)
        elif isinstance(x, str) and re.search("[\ud800-\udfff]", x):
            found.add("half of a surrogate pair")
        elif isinstance(x, (int, float)) and abs(x) > sys.float_info.max:
            found.add("a number beyond double")

    try:
        walk(json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=lambda _: found.add("NaN and Infinity")), 0)
    except (ValueError, RecursionError):
        pass
    return found


def class_of(kind, who, message, data):
    text = data[8:8 + int.from_bytes(data[:8], "little")] if kind == "safetensors" else data
    seen = traits(text) if who == "theirs" else set()
    for name, accepted_by, pattern, *seen_by_python in CLASSES[kind]:
        if who == accepted_by and re.search(pattern, message) and (name in seen or not seen_by_python):
            return name
    return None


def compared(kind, suffix, make, reference, same, options, folder, program, own):
    r = random.Random(f"{kind} {options.seed}")
    paths = [folder / f"{i:05}{suffix}" for i in range(options.files)]
    for path in paths:
        path.write_bytes(make(r, own))
    said_by_us = subprocess.run([program], input="\n".join(map(str, paths)) + "\n", capture_output=True, check=True, text=True).stdout
    answers = [json.loads(line) for line in said_by_us.rstrip("\n").split("\n")]
    assert len(answers) == len(paths), "an answer for every file"
    counts, classes, unknown = collections.Counter(), collections.defaultdict(list), []
    for path, answer in zip(paths, answers):
        theirs, problem = reference(path)
        ours = "read" in answer
        counts[ours, theirs is not None] += 1
        if ours and theirs is not None:
            if not same(answer["read"], theirs if kind == "safetensors" else theirs["value"]):
                unknown.append(f"{path.name}: both accept it, and read it otherwise")
        elif ours or theirs is not None:
            message = problem if ours else answer["refused"]
            name = class_of(kind, "ours" if ours else "theirs", message, path.read_bytes())
            if name:
                classes[name].append(path.name)
            else:
                unknown.append(f"{path.name}: only {'we accept' if ours else 'the reference accepts'} it: {message.replace(str(folder), '')[:200]}")
    print(f"{kind}, seed {options.seed}: {len(paths)} files; both accept {counts[True, True]}, both refuse {counts[False, False]}, "
          f"only the reference accepts {counts[False, True]}, only we accept {counts[True, False]}")
    for name, accepted_by, *_ in CLASSES[kind]:
        files = classes[name]
        print(f"  {len(files):4}  {'only we accept' if accepted_by == 'ours' else 'only we refuse'}: {name}" + (f" ({files[0]})" if files else ""))
    for line in unknown:
        print(f"  unexplained: {line}")
    return not unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files there")
    parser.add_argument("--library", nargs="+", default=[str(ROOT / "build/release/libmasquerade.a")], help="objects and libraries to link")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, program = options.keep or pathlib.Path(temporary), pathlib.Path(temporary) / "agree"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++17", "-O1", f"-I{ROOT}", pathlib.Path(__file__).with_suffix(".cpp"), *options.library, "-o", program,
                        "-pthread", "-lfmt", "-ldl"], check=True)
        subprocess.run([program, "own", folder / "own"], check=True)
        own = (folder / "own").read_bytes()
        good = compared("safetensors", ".safetensors", tensor_file, reference_tensors, same_tensors, options, folder, program, own)
        good &= compared("json", ".json", json_file, reference_json, same_json, options, folder, program, own)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
