#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Types the commands `$ ./inspect op ...` of the pages, and compares what the engine prints with what the page shows below
# the command. Numbers must agree to three digits, as in the walks through gdb.
#     examples.py PAGE ...            prints PAGE:LINE and what differs; status 1 if something does
#     examples.py --write PAGE ...    writes what the engine prints into the pages
# INSPECT is the program; by default, ./inspect.
import os
import re
import shlex
import subprocess
import sys

AGREE = 2e-3


def printed_by(command):
    words = shlex.split(command)
    done = subprocess.run([os.environ.get("INSPECT", "./inspect")] + words[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return [line.rstrip() for line in done.stdout.splitlines()], done.returncode


def agrees(shown, printed):
    shown, printed = shown.split(), printed.split()
    if len(shown) != len(printed):
        return False
    for a, b in zip(shown, printed):
        try:
            if abs(float(a) - float(b)) > AGREE * abs(float(b)):
                return False
        except ValueError:
            if a != b:
                return False
    return True


def examples(lines):
    """(line of the command, command, lines below it) of each example of a page; lines are counted from 0."""
    found, inside = [], False
    for at, line in enumerate(lines):
        if re.match(" *```", line):
            inside = not inside
        elif inside and line.startswith("$ ./inspect op "):
            found.append((at, line[2:], []))
        elif inside and found and not line.startswith("$") and at == found[-1][0] + len(found[-1][2]) + 1:
            found[-1][2].append(line)
    return found


def main(arguments):
    write, wrong, count = arguments[:1] == ["--write"], 0, 0
    for page in arguments[1:] if write else arguments:
        with open(page, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for at, command, shown in reversed(examples(lines)):
            count += 1
            printed, status = printed_by(command)
            if status:
                print("%s:%d: `%s`: %s" % (page, at + 1, command, printed[0] if printed else "ends with status %d" % status))
                wrong = 1
            elif write:
                if shown[-1:] == ["..."]:
                    continue
                lines[at + 1:at + 1 + len(shown)] = printed
            else:
                if shown[-1:] == ["..."]:
                    shown = shown[:-1]
                    printed = printed[:len(shown)]
                for i in range(max(len(shown), len(printed))):
                    a, b = (side[i] if i < len(side) else "" for side in (shown, printed))
                    if not agrees(a, b):
                        print("%s:%d: `%s`: the engine prints `%s`" % (page, at + 2 + i, a.strip(), b.strip()))
                        wrong = 1
        if write:
            with open(page, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
    if not write:
        print("examples: %d" % count)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
