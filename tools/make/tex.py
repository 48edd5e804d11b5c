# SPDX-License-Identifier: MIT
# The TeX of the pages. A formula in a line of text stands between two $, or $` and `$; a formula with lines of its own is
# a ```math block, or stands between two $$.
# plain(TEXT) returns the text with its formulas in the form in which derivations.py quotes them: `\frac{a}{b}` is a / b,
# `x_{ij}` is x_ij, `\sum_j` is Σ_j, and what only places symbols is gone.
#     python3 tools/make/tex.py PAGE ...    prints PAGE:LINE and what is wrong with a formula; status 1 if something is
import re
import sys

WORDS = {"sum": "Σ", "int": "∫", "cdot": ".", "le": "<=", "ge": ">=", "ne": "≠", "in": "in", "infty": "infinity", "top": "T",
         "to": "->", "gets": "<-", "sim": "~", "approx": "≈", "odot": "*", "times": "×", "mid": "|", "lvert": "|", "rvert": "|",
         "lVert": "|", "rVert": "|", "lfloor": "floor(", "rfloor": ")", "ldots": "...", "dots": "...", "ll": "<<", "pm": "±",
         "Vert": "||", "oplus": "+", "colon": ":", "circ": "∘", "partial": "∂", "propto": "~", "setminus": "\\", "cup": "∪",
         "prod": "∏", "langle": "<", "rangle": ">", "lt": "<", "gt": ">", "ell": "ℓ"}
NAMES = "exp log sin cos tan tanh cosh max min arg det dim Pr".split()
SPACES = r"quad qquad , ; : ! left right big Big bigl bigr Bigl Bigr displaystyle begin end limits nolimits phantom".split()
TEXTS = "text mathrel mathrm mathbf mathit mathbb mathcal boldsymbol operatorname".split()
ACCENTS = {"tilde": "~", "hat": "^", "bar": "¯", "overline": "¯"}
KNOWN = set(WORDS) | set(NAMES) | set(SPACES) | set(TEXTS) | set(ACCENTS) | {"frac", "tfrac", "sqrt", "underbrace"} | set("{}_%&#|\\ ")
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ", "0123456789-T"))
INLINE = re.compile(r"\$`([^`]+)`\$|(`+)[^`]*\2|\$\$([^$]+)\$\$|(?<![\\$\w])\$(?![\s$])([^$`]*?[^\s$\\`])\$(?![\w$])")


def group(tex, at):
    """The argument that begins at this place, without its braces, and the place behind it."""
    while at < len(tex) and tex[at] in " \n":
        at += 1
    if at < len(tex) and tex[at] == "{":
        depth, end = 1, at + 1
        while depth and end < len(tex):
            depth += {"{": 1, "}": -1}.get(tex[end], 0) if tex[end - 1] != "\\" else 0
            end += 1
        return tex[at + 1:end - 1], end
    found = re.match(r"\\[A-Za-z]+|\\.|.", tex[at:], re.S)
    return (found.group(), at + found.end()) if found else ("", at)


def joined(inner):
    """An index or an operand: with brackets, unless it is one name."""
    inner = plain_formula(inner).strip()
    return inner if re.fullmatch(r"[\w'()θ-ωΑ-Ω]*", inner) and inner.count("(") == inner.count(")") else "(%s)" % inner


def operand(inner, above):
    """The upper or lower part of a fraction."""
    inner = plain_formula(inner).strip()
    compound = re.search(r"[-+]", re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)|\^-?\w", "", inner)) or (not above and re.search(r"[ /*.Σ]|\w\w\(", inner) and not re.fullmatch(r"\w+\(.*\)|\|[^|]*\|", inner))
    return "(%s)" % inner if compound else inner


def plain_formula(tex):
    out, at = "", 0
    while at < len(tex):
        found = re.match(r"\\([A-Za-z]+|.)", tex[at:], re.S)
        if not found:
            if tex[at] in "_^":
                mark = tex[at]
                inner, at = group(tex, at + 1)
                inner = joined(inner)
                out += mark + ("(%s)" % inner if mark == "^" and "_" in inner and inner[0] != "(" else inner)
                continue
            if tex[at] not in "{}&":
                out += tex[at]
            at += 1
            continue
        name, at = found.group(1), at + found.end()
        if name in ("begin", "end", "phantom"):
            at = group(tex, at)[1]
            out += " "
        elif name in SPACES or name == "\\":
            out += " "
        elif name in ("frac", "tfrac"):
            above, at = group(tex, at)
            below, at = group(tex, at)
            out += operand(above, True) + " / " + operand(below, False)
        elif name == "sqrt":
            inner, at = group(tex, at)
            out += "sqrt(%s)" % plain_formula(inner).strip()
        elif name in TEXTS or name == "underbrace":
            inner, at = group(tex, at)
            out += plain_formula(inner) if name != "text" else replaced(inner, lambda source, m: plain_formula(source))
        elif name in ACCENTS:
            inner, at = group(tex, at)
            out += plain_formula(inner) + ACCENTS[name]
        else:
            out += WORDS.get(name, name)
    return out


def unified(text):
    """One spelling for what has several: x² and x^2, sum_j and Σ_j; and no spaces or backquotes."""
    text = re.sub("[%s]+" % "".join(SUPERSCRIPTS), lambda m: "^" + "".join(SUPERSCRIPTS[c] for c in m.group()), text)
    text = re.sub(r"\bsum(?=_| )", "Σ", text).replace("·", ".").replace("…", "...").replace("≤", "<=").replace("≥", ">=")
    return re.sub(r"[\s`]+", "", text)


def replaced(text, change):
    """The text, without fenced blocks, with change(TeX, match) in the place of each formula; code stays as it is."""
    def one(match):
        source = match.group(1) or match.group(3) or match.group(4)
        return change(source, match) if source else match.group()
    return INLINE.sub(one, text)


def parts(text):
    """The text, its ```math blocks and its other fenced blocks: (kind, line, text) with the kind prose, math or code."""
    line = 1
    for part in re.split(r"(^ *```.*?^ *```[ \t]*$\n?)", text, flags=re.S | re.M):
        opening = part.lstrip().split("\n", 1)[0].strip() if part.lstrip().startswith("```") else None
        yield "prose" if opening is None else "math" if opening == "```math" else "code", line, part
        line += part.count("\n")


def inside(block):
    return block.split("\n", 1)[1].rsplit("```", 1)[0]


def formulas(text):
    """(line, TeX, whether it is a block, whether it stands between $ alone) of each formula of a page."""
    found = []
    for kind, line, part in parts(text):
        if kind == "math":
            found.append((line, inside(part), True, False))
        elif kind == "prose":
            replaced(part, lambda source, m: found.append(
                (line + part.count("\n", 0, m.start()), source, bool(m.group(3)), bool(m.group(4)))) or "")
    return found


def plain(text):
    """The text of a page without the TeX of its formulas."""
    return "".join(plain_formula(inside(part)) if kind == "math" else
                   replaced(part, lambda source, m: plain_formula(source)) if kind == "prose" else part
                   for kind, line, part in parts(text))


# In a formula between two $, GitHub reads these as Markdown; in $`...`$ it does not.
MARKDOWN = [(r"\\[^A-Za-z]", "a backslash before a sign"), (r"[}\])']_", "an underscore behind a bracket or a prime"), (r"\*", "a star"),
            (r"<", "a less-than sign; write \\lt or \\le"), (r"\|", "a bar; write \\mid, \\lvert or \\rvert")]


def faults(text):
    for line, tex, block, bare in formulas(text):
        for found in re.finditer(r"\\([A-Za-z]+|.)", tex):
            name, here = found.group(1), line + block + tex.count("\n", 0, found.start())
            if name == "operatorname":
                yield here, tex, "GitHub refuses \\operatorname; write \\mathrm"
            elif name not in KNOWN:
                yield here, tex, "tools/make/tex.py does not know \\%s" % name
        braces = re.sub(r"\\.", "", tex)
        if braces.count("{") != braces.count("}"):
            yield line, tex, "the braces do not match"
        for pattern, what in MARKDOWN if bare else []:
            if re.search(pattern, tex):
                yield line, tex, "GitHub reads %s as Markdown; write $`...`$" % what


# Code with one of these is a formula.
ASCII = re.compile(r"[Σ∫δ][ _a-z(]|(?<![:\w])sqrt\(|\bsum_[a-z(][ <=:(]")


def in_ascii(text):
    """(line, text) of each formula that stands between backquotes or in a block without a language."""
    for kind, line, part in parts(text):
        if kind == "code" and re.match(r" *```\n", part):
            for at, row in enumerate(part.split("\n")):
                if ASCII.search(row) and "(gdb)" not in row:
                    yield line + at, row
        elif kind == "prose":
            for match in INLINE.finditer(part):
                if match.group(2) and ASCII.search(match.group()):
                    yield line + part.count("\n", 0, match.start()), match.group()


def main(pages):
    wrong = 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        found = list(faults(text)) + [(line, tex, "a formula; write it in TeX") for line, tex in in_ascii(text)]
        for line, tex, fault in found:
            print("%s:%d: `%s`: %s" % (page, line, " ".join(tex.split())[:60], fault))
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
