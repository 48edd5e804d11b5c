# SPDX-License-Identifier: MIT
# own_op.py: compiles the code that docs/add-an-op.md asks its reader to write. Each block of code is put into a copy of
# the engine, into the file that the heading of the block's section names. Nothing is linked, so this takes seconds.
# If the code does not compile, prints PAGE:LINE: `the line`: the error of g++.
import os
import re
import shutil
import subprocess
import sys
import tempfile

PAGE = "docs/add-an-op.md"
# For each file, the text before which a block of code is put. If a file does not exist, it is made from the block.
BEFORE = {
    "engine/math/row.h": "\n}  // namespace masquerade\n",
    "engine/ops/ops.h": "\n#endif\n",
    "engine/nn/functions.cpp": "\n}  // namespace masquerade\n",
    "engine/nn/functions.h": "\n}  // namespace masquerade\n",
    "engine/check/ops_table.cpp": "\n}  // namespace\n\nconst std::vector<Op>& ops_table()",
}
COMPILED = ["engine/ops/unit_norm.cpp", "engine/nn/functions.cpp", "engine/check/ops_table.cpp"]

page = open(PAGE).read()
with tempfile.TemporaryDirectory() as room:
    shutil.copytree(os.environ.get("root", ".") + "/engine", room + "/engine")
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        heading = re.search(r"`([\w/]+\.(?:h|cpp))`(?: and `(\.cpp)`)?", section.split("\n")[0])
        for code in re.findall(r"^```cpp yours.*?\n(.*?)^```", section, flags=re.M | re.S):
            file = heading[1]
            if heading[2] and not code.endswith(");\n"):  # a declaration goes into the header
                file = file.replace(".h", heading[2])
            if not os.path.exists(os.path.join(room, file)):
                open(os.path.join(room, file), "w").write(code)
                continue
            text = open(os.path.join(room, file)).read()
            at = text.rindex(BEFORE[file])
            open(os.path.join(room, file), "w").write(text[:at] + "\n" + code + text[at:])
    faults = 0
    for file in COMPILED:
        said = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-I.", "-Wall", "-Wextra", "-Wshadow", "-Werror",
                               "-Wno-c++20-extensions", "-fopenmp-simd", "-fsyntax-only", file],
                              cwd=room, capture_output=True, text=True)
        if said.returncode:
            error = re.search(r"error: (.*)\n +\d+ \| *(.*)", said.stderr)
            quoted, words = (error[2], error[1]) if error else (file, said.stderr[:200])
            print("%s:%d: `%s`: %s" % (PAGE, page[:max(page.find(quoted), 0)].count("\n") + 1, quoted, words))
            faults += 1
sys.exit(faults > 0)
