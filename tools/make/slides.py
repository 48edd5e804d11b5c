# SPDX-License-Identifier: MIT
# The slides of the course: each file of docs/slides is a deck, whose slides are separated by a line `---`.
#     slides.py build FOLDER DECK ...    writes each deck as one static page, FOLDER/NAME.html, which loads nothing: pictures,
#                                        fonts and formulas (KaTeX) are in the page
#     slides.py check DECK ...           prints DECK:LINE and what is wrong with a slide; status 1 if something is
import base64
import html
import importlib.util
import json
import os
import re
import shutil
import sys

import book
import tex

KATEX = "/usr/share/javascript/katex/"
MOST_SLIDES, MOST_WORDS, MOST_LINES = 15, 60, 16   # slides of a deck, with its title; words of a slide; lines of a block


def slides(text):
    """(line, Markdown without the notes, notes) of each slide. A line `---` inside a block of code separates nothing."""
    begin, fenced, part, found = 1, False, [], []
    for line, row in enumerate(text.rstrip("\n").split("\n") + ["---"], 1):
        fenced ^= row.startswith("```")
        if row == "---" and not fenced:
            notes = [row for row in part if re.match(r">( |$)", row)]
            found.append((begin, "\n".join(row for row in part if row not in notes), "\n".join(row[2:] for row in notes)))
            begin, part = line + 1, []
        else:
            part.append(row)
    return found


def words(text):
    """The words of a slide. A formula or a name in code is one word; blocks of code and of formulas are none."""
    prose = "".join(part for kind, _, part in tex.parts(text) if kind == "prose")
    prose = tex.INLINE.sub(" formula ", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose))
    return len(re.findall(r"\w[\w'.,/-]*", prose))


def faults(text):
    deck = slides(text)
    for found in re.finditer(r"(?<=[^\n])\n---$", text, re.M):   # Markdown would read the line above as a heading
        yield text.count("\n", 0, found.end()) + 1, "no empty line above `---`"
    if len(deck) > MOST_SLIDES:
        yield deck[MOST_SLIDES][0], "the deck has %d slides; at most %d" % (len(deck), MOST_SLIDES)
    for number, (line, body, notes) in enumerate(deck):
        line, body = line + len(body) - len(body.lstrip("\n")), body.lstrip("\n")
        heading = "##" if number else "#"
        if not re.match(heading + " ", body):
            yield line, "the slide does not begin with a heading `%s `" % heading
        if number and not notes.strip():
            yield line, "the slide has no notes, in lines that begin with `> `"
        if words(body) > MOST_WORDS:
            yield line, "the slide has %d words; at most %d" % (words(body), MOST_WORDS)
        for kind, at, part in tex.parts(body):
            if kind == "code" and part.count("\n") - 2 > MOST_LINES:
                yield line + at - 1, "the block has more than %d lines" % MOST_LINES


def data(path, kind):
    with open(path, "rb") as file:
        return "data:%s;base64,%s" % (kind, base64.b64encode(file.read()).decode())


def katex_style(used):
    """KaTeX's style sheet with its fonts, if a formula occurs in the HTML `used`."""
    style = book.read(KATEX + "katex.min.css")
    def face(match):
        file = re.search(r"fonts/[\w-]+\.woff2", match.group()).group()
        return re.sub(r"src:[^;}]*", "src:url(%s) format('woff2')" % data(KATEX + file, "font/woff2"), match.group())
    return re.sub(r"@font-face\{[^}]*\}", face, style) if 'class="katex"' in used else ""


def build(folder, decks):
    sys.path.append("/usr/lib/python3/dist-packages")   # Debian's packages, if python3 is another one
    if not (importlib.util.find_spec("markdown") and shutil.which("node") and os.path.exists(KATEX + "katex.min.css")):
        sys.exit("error: Markdown for Python, Node or KaTeX is not here; run: make deps-book")
    import markdown
    os.makedirs(folder, exist_ok=True)
    own, formulas, made = os.path.dirname(os.path.abspath(__file__)), [], []
    def as_html(text, path):
        marked = book.with_marks(path, book.with_links(text, path, "no pages"), formulas)
        text = markdown.markdown(book.with_wide_lists(marked), extensions=["fenced_code", "tables"])
        picture = lambda m: 'src="%s"' % data(os.path.join(os.path.dirname(path), m.group(1)), "image/svg+xml")
        text = re.sub(r'\bsrc="([^"]+\.svg)"', picture, text)
        columns = lambda m: max(len(html.unescape(row)) for row in m.group(2).split("\n"))
        wide = lambda m: '<pre style="--columns: %d">%s%s' % (columns(m), m.group(1), m.group(2))
        return re.sub("<pre>(<code[^>]*>)(.*?)(?=</code>)", wide, text, flags=re.S)
    for path in decks:
        deck = slides(book.read(path))
        made.append((path, [(as_html("\n" * (line - 1) + body, path), as_html(notes, path)) for line, body, notes in deck]))
    book.write(folder + "/formulas.json", json.dumps(formulas))
    _, mark, drawing = book.put_formulas(folder)
    for path, deck in made:
        pages = "".join('<section><div class="slide">%s<footer>%d / %d</footer></div><aside>%s</aside></section>\n' %
                        (body, number, len(deck), notes) for number, (body, notes) in enumerate(deck, 1))
        pages = mark.sub(drawing, pages)
        style = katex_style(pages) + book.read(own + "/slides.css")
        book.write("%s/%s.html" % (folder, os.path.basename(path)[:-3]),
                   '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s</title><style>%s</style></head>\n<body>%s'
                   '<script>%s</script></body></html>\n' % (html.escape(book.title_of(path)), style, pages, book.read(own + "/slides.js")))
    os.remove(folder + "/formulas.json")
    print("built %d decks of slides: %s/" % (len(made), folder))


def check(decks):
    found = ["%s:%d: slides: %s" % (path, line, fault) for path in decks for line, fault in faults(book.read(path))]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(build(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "build" else check(sys.argv[2:]))
