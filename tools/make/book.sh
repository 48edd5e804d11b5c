#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/book.sh FOLDER: builds the book as a site in FOLDER/site, with MkDocs and its theme Material. The site can
# be opened from disk, without a server.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v mkdocs > /dev/null || { echo 'error: no mkdocs here; apt-get install mkdocs mkdocs-material' >&2; exit 1; }
to=$1
rm -rf "$to/pages"
mkdir -p "$to"
cp -r docs "$to/pages"
# In links out of docs/, the README becomes a page of the site. A link to any other file becomes plain text.
sed -E 's/\]\(docs\//](/g; s/\]\(LICENSE\)/]/g' README.md > "$to/pages/masquerade.md"
sed -i -E 's/\]\(\.\.\/README\.md\)/](masquerade.md)/g; s/\[([^]]*)\]\(\.\.\/[a-z]+\/[^)]*\)/\1/g' "$to"/pages/*.md
echo '.md-grid { max-width: 75rem } .md-typeset pre > code { font-size: 0.72rem } .md-typeset table:not([class]) :is(th, td) { min-width: 3rem; padding: 0.5em 0.8em } .md-typeset td code { word-break: normal; overflow-wrap: normal }' > "$to/pages/book.css"
# In the navigation, the name of a folder (labs, ops, results) is replaced by a list of its pages, in order.
awk -v pages="$to/pages" '
    /^  - [A-Z][a-z]*: [a-z]+$/ {
        print "  - " $2; folder = $3
        command = "cd " pages " && ls " folder "/*.md"
        while ((command | getline page) > 0) print "      - " page
        close(command); next
    }
    { print }' tools/make/book.yml > "$to/mkdocs.yml"
mkdocs build --quiet --strict -f "$to/mkdocs.yml"
# A browser does not let a page that was opened from disk fetch the search index or start the search worker by URL.
# Therefore, both are put into one script.
python3 - "$to/site" <<'PY'
import glob, json, os, sys
site = sys.argv[1]
index = open(site + "/search/search_index.json").read()
worker = open(glob.glob(site + "/assets/javascripts/workers/search.*.js")[0]).read()
with open(site + "/search/search.js", "w") as f:
    f.write("var __search = {index: Promise.resolve(%s), worker: URL.createObjectURL(new Blob([%s]))}" % (index, json.dumps(worker)))
for page in glob.glob(site + "/**/*.html", recursive=True):
    text = open(page).read()
    to = os.path.relpath(site + "/search/search.js", os.path.dirname(page))
    open(page, "w").write(text.replace('<script id="__config"', '<script src="%s"></script><script id="__config"' % to, 1))
PY
echo "built the book: $to/site/index.html"
