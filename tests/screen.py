# SPDX-License-Identifier: MIT
# screen.py COLUMNS < RECORDING: prints what a terminal with so many columns shows after a program has written the
# recording. Knows line feeds, carriage returns, and the sequence that clears the rest of a line. A line that the
# terminal had to break, because it was too long, ends with " <broken>".
import re, sys

columns = int(sys.argv[1])
lines, column = [[]], 0
for part in re.findall(r"\x1b\[K|[\s\S]", sys.stdin.buffer.read().decode()):
    if part == "\n":
        lines.append([])
    elif part == "\r":
        column = 0
    elif part == "\x1b[K":
        del lines[-1][column:]
    elif ord(part) < 32 or ord(part) == 127:
        sys.exit(f"a control character that screen.py does not know: {part!r}")
    else:
        if column == columns:
            lines[-1].append(" <broken>")
            lines.append([])
            column = 0
        lines[-1] += " " * (column - len(lines[-1]))
        lines[-1][column : column + 1] = [part]
        column += 1
print("\n".join("".join(line).rstrip() for line in lines).removesuffix("\n"))
