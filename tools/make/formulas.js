// SPDX-License-Identifier: MIT
// Reads a list [[PAGE, LINE, TeX, whether it is a block], ...] as JSON from standard input, and writes the list of what
// KaTeX makes of each, as HTML. A formula that KaTeX cannot read is an error with its page and line; the status is then 1.
const katex = require('katex');
const formulas = JSON.parse(require('fs').readFileSync(0, 'utf8'));
let faults = 0;
const fault = (page, line, what) => { faults++; console.error(`${page}:${line}: ${what}`); };
const pages = formulas.map(([page, line, tex, block]) => {
    // Greek letters between \text{ and } have no font: `strict` is called for each of them.
    const strict = (code, message) => { fault(page, line, message); return 'ignore'; };
    try {
        return katex.renderToString(tex, {displayMode: block, throwOnError: true, strict});
    } catch (error) {
        fault(page, line, error.message);
        return '';
    }
});
if (faults) process.exit(1);
process.stdout.write(JSON.stringify(pages));
