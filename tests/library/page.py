# SPDX-License-Identifier: MIT
"""page.py PAGE...: runs the Python of pages (fences of ```python) and notebooks, each from top to bottom, in an empty folder.
Prints a line for each."""
import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile

root = os.getcwd()
sys.path.insert(0, os.path.join(root, "python"))


def cells(path):
    text = open(path, encoding="utf-8").read()
    if path.endswith(".ipynb"):
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


for path in sys.argv[1:]:
    names, said = {"__name__": "__main__"}, io.StringIO()
    all_cells = cells(path)
    assert all_cells, f"{path} has no Python"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder, contextlib.redirect_stdout(said):
        # A notebook looks for the project from the folder in which it runs.
        os.chdir(root if path.endswith(".ipynb") else folder)
        for number, cell in enumerate(all_cells, 1):
            try:
                exec(compile(ast.parse(cell), f"{path}, cell {number}", "exec"), names)
            except BaseException:
                sys.stderr.write(f"{path}, cell {number} failed, after it had printed:\n{said.getvalue()[-2000:]}\n")
                raise
        os.chdir(root)
    print(f"{path}: {len(all_cells)} cells")
    if "--show" in os.environ.get("PAGE", ""):
        print(said.getvalue())
