# SPDX-License-Identifier: MIT
# Types the commands of a page's walk through gdb, and compares what gdb prints with what the page shows. gdb itself
# runs this file, twice:
#     BOOK_TYPE=FILE gdb -batch -x tools/gdb/gdbinit -x tests/book/replay.py --args PROGRAM ...  > PRINTED
#     BOOK_COMPARE=FILE BOOK_PRINTED=PRINTED gdb -batch -x tests/book/replay.py
# FILE has lines PAGE<tab>LINE<tab>TEXT, which walks.awk has made. After each command, gdb must print the lines that the
# page shows, in this order; the page may leave lines out. `...` stands for text that differs from machine to machine.
# Numbers must agree to three digits, because another processor adds in another order. Line numbers of source code are
# not compared. The last line of a comparison is `book: command compared`, because gdb ends with 0 even after an
# exception of this file.
import os
import re

import gdb

NUMBER = r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+"
AGREE = 2e-3
MARK = "book: command "
GOES_ON = "run|continue|gradstep|runto|next|step|finish|until|advance"


def commands_of(path):
    """PAGE:LINE, the command, and the lines shown after it."""
    commands = []
    for row in open(path, encoding="utf-8"):
        page, line, text = row.rstrip("\n").split("\t", 2)
        if text.startswith("(gdb) "):
            commands.append(("%s:%s" % (page, line), text[6:].strip(), []))
        elif text.strip() not in ("", "..."):
            commands[-1][2].append(("%s:%s" % (page, line), text))
    return commands


def type_all(commands):
    gdb.execute("set width 0")
    for number, (_, command, _) in enumerate(commands):
        gdb.write("\n%s%d\n" % (MARK, number))
        gdb.flush()
        try:
            gdb.execute(command)
        except gdb.error as error:
            gdb.write("book: error\n%s\n" % error)
        if re.match("(%s)( |$)" % GOES_ON, command) and not gdb.selected_inferior().pid:
            gdb.write("book: ended\n")
        gdb.flush()


def printed_by(path):
    """The lines of each command."""
    printed = []
    for line in open(path, encoding="utf-8", errors="replace").read().splitlines():
        if line.startswith(MARK):
            printed.append([])
        elif printed and line.strip():
            printed[-1].append(line)
    return printed


def without_line_numbers(text):
    """file.cpp:12 and the number before a source line, which an edit further up in the file changes."""
    return re.sub(r"^\d+(?=\s)", "N", re.sub(r"(\.(?:h|cpp|cu|cuh)):\d+", r"\1:N", text.strip()))


def agrees(shown, printed):
    """One line of the page and one of gdb's."""
    shown, printed = without_line_numbers(shown), without_line_numbers(printed)
    pattern, wanted = "", []
    for part in re.split(r"(\.\.\.|" + NUMBER + ")", " ".join(shown.split())):
        if part == "...":
            pattern += ".*"
        elif re.fullmatch(NUMBER, part):
            pattern += r"(-?[\d.]+(?:e[-+]?\d+)?)"
            wanted.append(float(part))
        else:
            pattern += re.escape(part)
    found = re.fullmatch(pattern, " ".join(printed.split()))
    try:
        return bool(found) and all(abs(float(f) - w) <= AGREE * abs(w) for f, w in zip(found.groups(), wanted))
    except ValueError:
        return False


def difference(shown, printed):
    """PAGE:LINE and what is wrong there, or None."""
    if any(re.search(r"\) pending\.$", line) for line in printed):
        return None, "no such function or line"
    if not shown:
        for fault in ("error", "ended"):
            if "book: " + fault in printed:
                return None, "the program ended here" if fault == "ended" else "gdb refuses it"
    at = 0
    for place, line in shown:
        while at < len(printed) and not agrees(line, printed[at]):
            at += 1
        if at == len(printed):
            return place, "the page shows `%s`, and gdb does not" % line.strip()
        at += 1
    return None


def compare_all(commands, printed):
    for (place, command, shown), lines in zip(commands, printed + [["book: error"]] * len(commands)):
        found = difference(shown, lines)
        if found:
            print("%s: `(gdb) %s`: %s" % (found[0] or place, command, found[1]))
            for line in [line for line in lines if not line.startswith("book: ")][:12]:
                print("    gdb prints: " + line)
    print(MARK + "compared")


if "BOOK_TYPE" in os.environ:
    type_all(commands_of(os.environ["BOOK_TYPE"]))
else:
    compare_all(commands_of(os.environ["BOOK_COMPARE"]), printed_by(os.environ["BOOK_PRINTED"]))
