#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/make/book.sh FOLDER [pdf]: builds the book as a site in FOLDER/site, with MkDocs and its theme Material. The site
# can be opened from disk, without a server, and published by copying the folder. KaTeX turns the formulas of the pages
# into HTML here, so that a page loads no script for them. With `pdf`, Chromium also prints the pages to FOLDER/book.pdf.
# The pages and the search have no solutions of the labs, unless the environment variable SOLUTIONS is "yes".
set -euo pipefail
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium-headless-shell || command -v chromium || echo chromium-headless-shell)
for program in mkdocs node ${2:+$chromium pdfinfo}; do
    command -v $program > /dev/null || { echo "error: no $program here; run: make deps-book" >&2; exit 1; }
done
katex=/usr/share/javascript/katex
[ -e $katex/katex.min.css ] || { echo 'error: no KaTeX here; run: make deps-book' >&2; exit 1; }
to=$1
rm -rf "$to/pages"
mkdir -p "$to"
cp -r docs "$to/pages"
[ "${SOLUTIONS:-}" = yes ] || rm -rf "$to/pages/labs/solutions"
# The README becomes a page of the book.
sed -E 's/\]\(docs\//](/g; s/\]\(LICENSE\)/]/g' README.md > "$to/pages/masquerade.md"
cp tools/make/book.css "$to/pages"
cp tools/make/print.css "$to"
mkdir "$to/pages/katex"
cp -rL $katex/katex.min.css $katex/fonts "$to/pages/katex"
python3 -B tools/make/book.py pages "$to"
mkdocs build --quiet --strict -f "$to/mkdocs.yml"
python3 -B tools/make/book.py site "$to"
echo "built the book: $to/site/index.html"
[ "${2:-}" = pdf ] || exit 0
rm -f "$to/book.pdf"
for pass in 1 2; do  # the second one has the page numbers of the first in its contents
    python3 -B tools/make/book.py print "$to"
    "$chromium" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --generate-pdf-document-outline \
        --print-to-pdf="$to/book.pdf" "file://$(realpath "$to")/print.html" 2> "$to/chromium.log" || { cat "$to/chromium.log" >&2; exit 1; }
done
echo "printed the book: $to/book.pdf"
