# SPDX-License-Identifier: MIT
# The steps of tools/make/book.sh before and after MkDocs.
#     book.py pages FOLDER    prepares FOLDER/pages, a copy of docs/ with the README as masquerade.md, and mkdocs.yml
#     book.py site FOLDER     puts the formulas into FOLDER/site, and makes its search work without a server
#     book.py print FOLDER    makes FOLDER/print.html, all pages of FOLDER/site but the slides, in the order of their
#                             navigation. If there is a FOLDER/book.pdf, its page numbers come into the contents
import glob
import html
import json
import os
import re
import subprocess
import sys

import tex

# A name that is one word in code and several in a question. The search finds the page of the name by these words, too.
SPOKEN = {"layernorm": "layer norm, layer normalisation", "rms_norm": "RMS norm", "residual_norm": "residual norm, add and norm",
          "cross_entropy": "cross entropy, softmax loss", "weighted_sum": "weighted sum", "squared_relu": "squared ReLU, relu2",
          "scale_columns": "scale columns", "vmf_sample": "von Mises-Fisher sample", "lsh_attention": "LSH attention, Reformer",
          "slot_loss": "slot loss, insertion loss", "chosen_logits": "chosen logits", "feature_map": "feature map, random features",
          "head_scores": "head scores", "local_lambda": "local lambda", "state_attention": "state attention, linear attention",
          "glu": "gated linear unit, SwiGLU", "silu": "swish", "linear": "linear layer, matrix product", "embedding": "lookup table"}
MARK = "FORMULA%dALUMROF"   # stands for a formula while MkDocs reads the page: letters that Markdown leaves alone


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()

def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)

def with_marks(page, text, formulas):
    """The page with a mark for each formula, which is appended to `formulas`."""
    def mark(line, source, block):
        formulas.append([page, line, source, block])
        return MARK % (len(formulas) - 1)
    out = []
    for kind, line, part in tex.parts(text):
        if kind == "math":
            indent = part[:len(part) - len(part.lstrip(" "))]
            out.append("%s%s\n" % (indent, mark(line, tex.inside(part), True)))
        elif kind == "prose":
            out.append(tex.replaced(part, lambda source, m: mark(line + part.count("\n", 0, m.start()), source, False)))
        else:  # "```cpp yours: ..." says to tests/book.sh whose code it is
            out.append(re.sub(r"^( *```\w*) .*", r"\1", part, count=1))
    return "".join(out)

def with_wide_lists(text):
    """MkDocs wants the text of a list item indented by four columns, and an empty line before a list; GitHub does not."""
    lines, items, fence, before = [], [], False, ""
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        if line.strip() and not fence:
            while items and depth < items[-1]:
                items.pop()
        item = re.match(r" *([-*]|\d+\.) +", line)
        wide = 4 * len(items) + max(0, depth - (items[-1] if items else 0))
        if line.strip():
            if item and not fence and before.strip() and not items and not re.match(r" *([-*]|\d+\.) ", before):
                lines.append("")
            lines.append(" " * wide + line.lstrip())
        else:
            lines.append(line)
        if re.match(r" *```", line):
            fence = not fence
        if item and not fence:
            items.append(len(item.group()))
        before = line
    return "\n".join(lines)

def title_of(path):
    found = re.search(r"^# (.+)$", read(path), re.M)
    return found.group(1).replace("`", "") if found else os.path.basename(path)

def with_links(text, path, pages):
    """Links whose text is the name of a page get its title; links to files that the book does not have become plain text."""
    def link(match):
        name, target = match.groups()
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not file:
            return match.group()
        there = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if there == os.path.normpath(os.path.join(pages, "../README.md")):
            there = os.path.join(pages, "masquerade.md")
        if not there.startswith(pages) or not os.path.isfile(there):
            return name
        if there.endswith(".md") and re.fullmatch(r"[\w./-]+\.md", name.strip("`")):
            name = title_of(there)
        return "[%s](%s%s)" % (name, os.path.relpath(there, os.path.dirname(path)), "#" + anchor if anchor else "")
    return "".join(re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, part) if kind == "prose" else part
                   for kind, _, part in tex.parts(text))

def with_navigation(settings, pages):
    """book.yml, in whose navigation the name of a folder is replaced by a list of its pages, and `section` by the pages that the
    README of the book links under this heading. Pages that have no place come last."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", read(pages + "/README.md"), re.S | re.M))
    placed = set()
    def section(match):
        links = re.findall(r"\]\(([\w-]+\.md)\)", sections[match.group(1)])
        new = [name for name in dict.fromkeys(links) if name not in placed]
        placed.update(new)
        return "  - %s: [%s]\n" % (match.group(1), ", ".join(new))
    settings = re.sub(r"^  - (.+): section\n", section, settings, flags=re.M)
    def folder(match):
        paths = sorted(glob.glob("%s/%s/*.md" % (pages, match.group(2))))
        return "  - %s:\n%s" % (match.group(1), "".join("      - %s\n" % os.path.relpath(path, pages) for path in paths))
    settings = re.sub(r"^  - (\w+): (\w+)\n", folder, settings, flags=re.M)
    rest = [name for name in sorted(os.listdir(pages)) if name.endswith(".md") and not re.search(r"[ \[]%s\b" % re.escape(name), settings)]
    return settings + ("  - More: [%s]\n" % ", ".join(rest) if rest else "")

def prepare(folder):
    pages, formulas = os.path.abspath(folder + "/pages"), []
    paths = sorted(glob.glob(pages + "/**/*.md", recursive=True))
    texts = {path: with_links(read(path), path, pages) for path in paths}
    for path, text in texts.items():
        text = with_marks("docs/" + os.path.relpath(path, pages), text, formulas)
        write(path, with_wide_lists(text.replace("<details>", "<details markdown>")))
    write(folder + "/formulas.json", json.dumps(formulas))
    write(folder + "/mkdocs.yml", with_navigation(read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "book.yml")), pages))

def put_formulas(folder):
    formulas = json.loads(read(folder + "/formulas.json"))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "formulas.js")
    drawn = subprocess.run(["node", script], input=json.dumps(formulas), stdout=subprocess.PIPE, text=True, check=False,
                           env={**os.environ, "NODE_PATH": "/usr/share/nodejs:" + os.environ.get("NODE_PATH", "")})
    if drawn.returncode:
        sys.exit("error: KaTeX cannot read the formulas above")
    drawn = json.loads(drawn.stdout)
    mark = re.compile("(?:<p>)?" + MARK.replace("%d", r"(\d+)") + "(?:</p>)?")
    def drawing(match):
        number = int(match.group(1))
        if formulas[number][3]:
            return '<div class="formula">%s</div>' % drawn[number]
        return match.group().replace(MARK % number, drawn[number])
    return formulas, mark, drawing

def finish(folder):
    site = folder + "/site"
    formulas, mark, drawing = put_formulas(folder)
    plain = lambda match: tex.plain_formula(formulas[int(match.group(1))][2])
    index = json.loads(read(site + "/search/search_index.json"))
    for entry in index["docs"]:
        for key in ("title", "text"):
            entry[key] = mark.sub(lambda m: html.escape(plain(m)), entry[key])
        name = re.fullmatch(r"ops/(\w+)\.html(#.*)?", entry["location"])
        if name and name.group(1) in SPOKEN:
            key = "text" if name.group(2) else "title"
            entry[key] = "%s (%s)" % (entry[key], SPOKEN[name.group(1)])
        if re.match("(decisions|seeds)[.]|(decisions|slides)/", entry["location"]):   # they mention everything
            entry["boost"] = 0.3
    write(site + "/search/search_index.json", json.dumps(index))
    # A browser does not let a page that was opened from disk fetch the search index or start the search worker by URL.
    # Therefore, both are put into one script.
    worker = read(glob.glob(site + "/assets/javascripts/workers/search.*.js")[0])
    write(site + "/search/search.js", "var __search = {index: Promise.resolve(%s), worker: URL.createObjectURL(new Blob([%s]))}" %
          (json.dumps(index), json.dumps(worker)))
    for page in glob.glob(site + "/**/*.html", recursive=True):
        text = read(page)
        to = os.path.relpath(site + "/search/search.js", os.path.dirname(page))
        head, body = text.split("</head>", 1)
        head = mark.sub(plain, head)
        body = mark.sub(drawing, body)
        body = re.sub(r"<thead>\s*<tr>(\s*<th[^>]*></th>)+\s*</tr>\s*</thead>", "", body)   # a table without a head
        # A line does not break behind the "--" of an option.
        whole = lambda m: re.sub(r"(?<![\w-])--\w[\w-]*", r'<span class="option">\g<0></span>', m.group())
        body = re.sub(r"<code>[^<]*</code>", whole, body)
        body = body.replace('<script id="__config"', '<script src="%s"></script><script id="__config"' % to, 1)
        write(page, head + "</head>" + body)

def print_order(nav):
    """The pages of `nav:` in mkdocs.yml, each once, with the names of the parts of the book."""
    parts, lines = [], nav.split("\nnav:\n")[1].split("\n")
    for line in lines:
        found = re.match(r"  - ([^:]+):\s*(.*)$", line)
        if found:
            name, rest = found.groups()
            parts.append((name, re.findall(r"[\w/.-]+\.md", rest)))
        elif re.match(r"      - ", line):
            parts[-1][1].append(re.findall(r"[\w/.-]+\.md", line)[0])
    return parts

def print_page(folder):
    site = folder + "/site"
    parts = [part for part in print_order(read(folder + "/mkdocs.yml")) if part[0] != "Slides"]
    name = lambda page: "p-" + re.sub(r"\W", "-", page)
    pages = {page[:-3] + ".html" if page != "README.md" else "index.html": page for _, all in parts for page in all}
    def article(file, page):
        text = re.search(r"<article[^>]*>(.*)</article>", read(site + "/" + file), re.S).group(1)
        text = re.sub(r'<span class="katex-mathml">.*?</math></span>', "", text)   # is for browsers that read aloud
        text = text.replace("<details>", "<details open>")
        text = re.sub(r'<a class="headerlink"[^>]*>[^<]*</a>|<h1>Index</h1>', "", text)
        text = re.sub(r'\bid="([^"]+)"', lambda m: 'id="%s-%s"' % (name(page), m.group(1)), text)
        def link(match):
            key, target = match.groups()
            path, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(file), path)) if path else file
            if there in pages and key == "href" and not re.match("[a-z]+:", target):
                return 'href="#%s%s"' % (name(pages[there]), "-" + anchor if anchor else "")
            if re.match("[a-z]+:", target):
                return match.group()
            return '%s="site/%s"' % (key, there) if key == "src" else 'title="%s"' % there
        text = re.sub(r'\b(href|src)="([^"]*)"', link, text)
        return '<article id="%s">%s</article>' % (name(page), text)
    number_of = {}
    if os.path.exists(folder + "/book.pdf"):
        printed = subprocess.run(["pdfinfo", "-dests", folder + "/book.pdf"], stdout=subprocess.PIPE, text=True, check=True).stdout
        number_of = {anchor: page for page, anchor in re.findall(r'^ *(\d+) \[.*"(.*)"$', printed, re.M)}
    contents, bodies = [], []
    for part, all in parts:
        title = lambda page: html.escape(title_of(folder + "/pages/" + page).replace("*", ""))
        line = lambda page: '<li><a href="#%s"><span>%s</span><b>%s</b></a></li>' % (name(page), title(page), number_of.get(name(page), ""))
        contents.append("<li>%s<ol>%s</ol></li>" % (html.escape(part), "".join(map(line, all))))
        for page in all:
            bodies.append(article(page[:-3] + ".html" if page != "README.md" else "index.html", page))
    style = "".join('<link rel="stylesheet" href="%s">' % sheet for sheet in ("site/katex/katex.min.css", "print.css"))
    write(folder + "/print.html", '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Masquerade</title>%s</head><body>'
          '<section class="cover"><h1>Masquerade</h1><p>The Transformer is a play; everything is in the mask.</p></section>'
          '<nav><h1>Contents</h1><ol>%s</ol></nav>%s</body></html>' % (style, "".join(contents), "".join(bodies)))


if __name__ == "__main__":
    {"pages": prepare, "site": finish, "print": print_page}[sys.argv[1]](sys.argv[2])
