# SPDX-License-Identifier: MIT
# The language of derivations.py: rows of numbers with the arithmetic of the pages, the table of ops, the complex step.
import cmath
import pathlib
import random
import re
import sys

H = 1e-30        # the step, along the imaginary axis
AGREE = 1e-11    # the allowed error, relative to the largest number of a gradient
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/make"))
import tex       # reads the TeX of the pages
CASES = []       # name, page, formula, inputs: one for each `op` line of derivations.py


def depth(x):
    return 0 if not isinstance(x, list) else 1 + depth(x[0]) if x else 1

def pairwise(f):
    """f number by number; a number beside a row, or a row beside rows, goes with each of them."""
    def both(a, b):
        if depth(a) != depth(b):
            return Row(both(x, b) for x in a) if depth(a) > depth(b) else Row(both(a, y) for y in b)
        if depth(a) == 0:
            return f(a, b)
        assert len(a) == len(b), "rows of %d and %d numbers" % (len(a), len(b))
        return Row(map(both, a, b))
    return both

class Row(list):
    """Numbers, or rows of numbers.  a * b: number by number.  a @ b: dot product, matrix product.  a | b: side by side."""
    __add__ = __radd__ = __iadd__ = pairwise(lambda a, b: a + b)
    __mul__ = __rmul__ = __imul__ = pairwise(lambda a, b: a * b)
    __sub__, __rsub__ = pairwise(lambda a, b: a - b), pairwise(lambda a, b: b - a)
    __truediv__, __rtruediv__ = pairwise(lambda a, b: a / b), pairwise(lambda a, b: b / a)
    __neg__ = lambda a: -1 * a
    __or__ = lambda a, b: Row([*a, *b])
    __getitem__ = lambda a, i: Row(list.__getitem__(a, i)) if isinstance(i, slice) else list.__getitem__(a, i)
    T = property(lambda a: Row(map(Row, zip(*a))))

    def __matmul__(a, b):
        if depth(a) == 2:
            return Row(row @ b for row in a)
        return Row(a @ column for column in b.T) if depth(b) == 2 else sum(a * b)

def one_by_one(f):
    return lambda x: Row(map(one_by_one(f), x)) if isinstance(x, Row) else f(x)

exp, log, sqrt, tanh, sin, cos = map(one_by_one, (cmath.exp, cmath.log, cmath.sqrt, cmath.tanh, cmath.sin, cmath.cos))
real = one_by_one(lambda x: complex(x).real)
positive = one_by_one(lambda x: int(complex(x).real > 0))   # [x > 0]: a branch is taken by the real part

def by_row(f, *rows):
    return Row(map(f, *rows))

def mean(x):
    return sum(x) / len(x)

def log_sum_exp(x):
    top = max(real(x))
    return top + log(sum(exp(x - top)))

def softmax(x):
    return exp(x - log_sum_exp(x))


class Draw:
    """The shape of an input, drawn as around + spread e, e normal. With moves=False it is a constant, without a gradient."""
    def __init__(self, *shape, spread=1, around=0, moves=True):
        self.shape, self.spread, self.around, self.moves = shape, spread, around, moves

    def drawn(self, source, *shape):
        if not shape:
            return self.around + self.spread * source.gauss(0, 1)
        return Row(self.drawn(source, *shape[1:]) for _ in range(shape[0]))

def op(name, page=None, **inputs):
    """One case of an op; what stands before a comma is the op's name in ops.h. The function below it gets the inputs, makes the
    outputs by the formulas of the page, and returns them and its backward. Its docstring is quoted from the page, line by line."""
    def entered(formula):
        CASES.append((name, page or name.split(",")[0], formula, inputs))
        return formula
    return entered

def numbers(x):
    return [n for part in x for n in numbers(part)] if isinstance(x, list) else [x]

def shaped(like, values):
    return Row(shaped(part, values) for part in like) if isinstance(like, list) else next(values)

def largest(values):
    """As max, but NaN is the largest of all."""
    return max(values, key=lambda v: v if v == v else float("inf"), default=0)

def differences(name, formula, inputs):
    """For each input that moves, how far its stated gradient is from Im L(x + ih) / h, with L = Σ dy y and a random dy."""
    source = random.Random(name)
    given = {key: x.drawn(source, *x.shape) if isinstance(x, Draw) else x for key, x in inputs.items()}
    *ys, backward = formula(**given)
    dys = [shaped(y, iter([source.gauss(0, 1) for _ in numbers(y)])) for y in ys]
    stated = backward(*dys)
    for key in sorted(stated.keys() | {"d" + key for key, x in inputs.items() if isinstance(x, Draw) and x.moves}):
        own, slopes, found = numbers(given.get(key[1:], [])), [], [complex(x).real for x in numbers(stated.get(key, []))]
        for i, x in enumerate(own):
            *ys, _ = formula(**{**given, key[1:]: shaped(given[key[1:]], iter(own[:i] + [complex(x, H)] + own[i + 1:]))})
            slopes.append(complex(sum(dy * y for dy, y in zip(numbers(dys), numbers(ys)))).imag / H)
        size = largest(map(abs, slopes + found)) or 1
        yield key, largest(abs(a - b) / size for a, b in zip(found, slopes)) if len(found) == len(slopes) else float("nan")

def misquoted(page, formula):
    """What the docstring says and the page does not. The page is read without its TeX (tex.py), and spaces do not count."""
    if not (ROOT / page).exists():
        return ["no such page"]
    text = tex.unified(tex.plain((ROOT / page).read_text(encoding="utf-8")))
    lines = [" ".join(line.split()) for line in (formula.__doc__ or "").split("\n")]
    return ["`%s`: derivations.py quotes it, and it is not here" % line if line else "derivations.py quotes nothing"
            for line in lines if not line or tex.unified(line) not in text]

def report(exempt):
    """Prints a line for each op with a backward, then the faults. `exempt`: ops without a case, and why. Returns the status."""
    there = re.findall(r"^OP\((\w+)_backward\b", (ROOT / "engine/ops/ops.h").read_text(encoding="utf-8"), re.M)
    known = {case.split(",")[0] for case, *_ in CASES} | set(exempt)
    faults = ["engine/ops/ops.h: %s: derivations.py has no case of it" % name for name in there if name not in known]
    faults += ["tests/book/derivations.py: %s: ops.h has no such backward" % name for name in sorted(known - set(there))]
    for name in there:
        worst = []
        for case, page, formula, inputs in [case for case in CASES if case[0].split(",")[0] == name]:
            page = "docs/ops/%s.md" % page
            faults += ["%s: %s" % (page, fault) for fault in misquoted(page, formula)]
            for gradient, difference in differences(case, formula, inputs):
                worst.append(difference)
                if not difference <= AGREE:
                    faults.append("%s: %s: %s: complex step %.3g > %g" % (page, case, gradient, difference, AGREE))
        print("  %-18s %s" % (name, "%.1e" % largest(worst) if worst else exempt.get(name, "-")))
    faults = list(dict.fromkeys(faults))
    print(*faults, "derivations: %d ops, %d faults" % (len(set(there) - set(exempt)), len(faults)), sep="\n")
    return 1 if faults else 0
