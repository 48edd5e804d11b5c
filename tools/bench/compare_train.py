# SPDX-License-Identifier: MIT
"""PyTorch's ways of training a mark, beside ours: for each its fastest settings are searched, what it computes is
compared, and it runs in a process of its own."""
from children import Peer, PeerError, note, progress, spread
from compare_train_report import line, paragraph, said, summary

# Memory that is kept and not given back to the system costs no page faults at every step.
KEPT = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
ALLOCATORS = {  # and the variables that choose it
    "glibc, tuned": KEPT,
    "glibc": {},
    "glibc, tuned, huge pages": {**KEPT, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"},
}
NAMED = {  # what can be chosen by hand
    "mode": ("eager", "layers compiled", "compiled"),
    "attention": ("explicit", "sdpa"),
    "optimiser": ("single", "foreach", "fused"),
    "loss": ("logits", "chunked"),
}
HOPELESS = 1.2  # times the fastest so far


def choices():
    return ", ".join(f"{name}={'|'.join(NAMED[name])}" for name in NAMED)


def named(text):
    """The settings that "mode=compiled,attention=sdpa" names."""
    found = {}
    for one in filter(None, text.split(",")):
        name, _, choice = one.partition("=")
        if choice not in NAMED.get(name, ()):
            raise ValueError(f"--variant: there is no {one}; there are {choices()}")
        found[name] = choice
    return found


def search(axes, attempt, tried):
    """The fastest of `tried`, to which is added: one axis after the other, its choices with the best of the other axes, of
    which the fastest stays. Not all combinations: what is best here is nearly always best there. attempt(variant, limit)
    gives the "seconds", or why it "failed"; it may give up on what takes longer than the limit."""

    def fastest():
        return min((one for one in tried if "seconds" in one), key=lambda one: one["seconds"], default=None)

    def run(variant):
        best = fastest()
        tried.append({"variant": variant, **attempt(variant, HOPELESS * best["seconds"] if best else None)})
        return tried[-1]

    here = run({name: choices[0] for name, choices in axes.items()})
    for name, choices in axes.items():
        before = here["variant"]
        for choice in choices[1:]:
            found = run({**before, name: choice})
            if found.get("seconds", 1e99) < here.get("seconds", 1e99):
                here = found
    return fastest()


def described(variant):
    """ "compiled, explicit attention, ..." """
    words = {"attention": " attention", "loss": " loss", "optimiser": " AdamW"}
    order = ("mode", "attention", "loss", "optimiser", "allocator")
    return ", ".join(variant[axis] + words.get(axis, "") for axis in order if axis in variant)


def axes_of(chunked, device, eager, only, like):
    """What this PyTorch lets be chosen; beside another form of the same model, only what may differ from it. A GPU's memory
    is PyTorch's own affair: there is nothing to choose."""
    axes = {
        "allocator": list(ALLOCATORS) if device == "cpu" else ["glibc"],
        "attention": ["explicit", "sdpa"],
        "optimiser": ["fused", "foreach"],
        "loss": ["logits"] + ["chunked"] * chunked,
        "mode": ["eager"] + ["layers compiled", "compiled"] * (not eager),
    }
    if like:
        axes.update({name: [like[name]] for name in ("allocator", "optimiser", "loss")})
    if only:
        axes = {name: [only.get(name, found[0])] for name, found in axes.items()}
    return axes


def agree(ours, theirs, tolerance):
    """Whether two programs that do the same may differ so: by the order of their sums, or by bf16's eight bits."""
    return abs(ours - theirs) <= tolerance * max(1.0, abs(ours))


class Rival:
    """One form of the model in PyTorch, in one precision: found() is its part of the JSON."""

    def __init__(self, train, form, precision, like):
        self.train, self.form, self.precision = train, form, precision
        self.tried, self.runs, self.faults, self.child, best = [], [], 0, None, None
        pythons, why = [like.python] if like else train.options.peers, ""
        for python in pythons:
            try:
                found = self.search(python, like)
                if found and found is not best:
                    best, self.python = found, python
            except PeerError as error:
                why = error
                train.notes.append(str(error))
        if not best:
            why = self.tried[0]["failed"] if self.tried else why
            raise PeerError(f"no PyTorch here trains {form} in {precision}: {why}")
        self.variant = best["variant"]
        self.check = self.ask("check", {**self.variant, "mode": "eager"})  # what is compared is not the compiler

    def ask(self, do, variant, python=None, **more):
        self.open(python or self.python, variant["allocator"])
        return self.child.ask(do, form=self.form, variant={**variant, "precision": self.precision}, **more)

    def open(self, python, allocator):
        """A child of this Python with this allocator: that which is there, or another."""
        if self.child and self.place == (python, allocator):
            return
        self.end()
        self.place = (python, allocator)
        environment = {**ALLOCATORS[allocator], "OMP_NUM_THREADS": str(self.train.threads)}
        self.child = Peer(python, "train_peer.py", environment)
        about = self.child.ask("start", threads=self.train.threads, **self.train.about)
        self.version, self.chunked = about["version"], about["chunked_loss"]

    def search(self, python, like):
        device, options = self.train.device, self.train.options
        first = like.variant["allocator"] if like else "glibc, tuned" if device == "cpu" else "glibc"

        def attempt(variant, limit):
            progress(f"{self.form} {self.precision}: {described(variant)}")
            try:
                return self.ask("attempt", variant, python, limit=limit)
            except PeerError as error:
                self.end()
                return {"failed": str(error)}

        try:
            self.open(python, first)
            axes = axes_of(self.chunked, device, options.eager, options.only, like and like.variant)
            return search(axes, attempt, self.tried)
        except PeerError:
            self.end()
            raise

    def build(self):
        """A process that did nothing else."""
        self.end()
        self.first_loss = self.ask("build", self.variant)["loss"]

    def run(self, seconds):
        found = self.child.ask("run", seconds=seconds)
        self.runs.append(found["seconds"])
        self.faults += found["faults"]

    def products(self, products, seconds):
        """Seconds of each, null where PyTorch has none: of bf16 factors into an f32 matrix. Where the factors differ in type
        PyTorch's are of the narrower."""
        asked = []
        for p in products:
            left, right, _, into = p["type"].split()
            kind = "bf16" if "bf16" in (left, right) else "f32"
            if kind == "f32" or into == "bf16":
                asked.append([p["m"], p["n"], p["k"], p["order"], kind, p["add"]])
            else:
                asked.append(None)
        found = iter(self.child.ask("products", products=[one for one in asked if one], seconds=seconds)["seconds"])
        return [one and next(found) for one in asked]

    def label(self):
        return "PyTorch" + ", joint" * (self.form == "joint") + ", no master" * (self.precision == "bf16")

    def chosen(self):
        tried = [{"settings": described(one["variant"]), **{k: one[k] for k in ("seconds", "failed") if k in one}}
                 for one in self.tried]
        return {"form": self.form, "precision": self.precision, "python": self.python, "version": self.version,
                "variant": self.variant, "settings": described(self.variant), "tried": tried}

    def found(self, row):
        ours = row["ours"]
        seconds = spread(self.runs)
        return {**self.chosen(), "seconds": seconds, "tokens_per_second": row["tokens"] / seconds["median"],
                "runs": self.runs, "ratio": seconds["median"] / ours["seconds"]["median"],
                "faults_per_step": self.faults / len(self.runs), "peak_bytes": self.child.ask("memory")["bytes"],
                "first_loss": self.first_loss, "check": self.check, "agrees": self.agrees(row)}

    def agrees(self, row):
        ours, whole = row["ours"], self.precision == "f32"
        tolerances = {"loss": 1e-5, "norm": 1e-3, "next": 1e-4} if whole else {"loss": 5e-3, "norm": 5e-2, "next": 1e-2}
        if not all(agree(ours["check"][k], self.check[k], t) for k, t in tolerances.items()):
            return False
        # The loss that was measured, compiled or not; the reference's counts padding.
        tolerance = 2e-2 if row["sizes"]["dropout"] > 0 else tolerances["loss"]
        first = self.form == "joint" or agree(ours["first_loss"], self.first_loss, tolerance)
        return first and self.check["parameters"] == row["parameters"]

    def end(self):
        if self.child:
            self.child.end()
        self.child = None


class Train:
    """Each rival runs in every turn of ours; one that fails is left out, with a note."""

    def __init__(self, options, head):
        self.options, self.head, self.so_far, self.rivals = options, [], None, []
        self.threads, self.version = head["machine"]["threads"], None

    def header(self, columns):
        return columns

    def ready(self, about):
        self.so_far, self.products = about.pop("so_far"), about.pop("products")
        self.seconds, self.about, self.device = about.pop("run_seconds"), about, about["device"]
        self.rivals, self.notes = [], []
        bf16, univae = self.so_far["precision"] == "bf16", "quantiles" in about["batch"]
        precision, form = "autocast" if bf16 else "f32", "split" if univae else "bert"
        for work in [(form, precision)] + [("joint", precision)] * univae + [(form, "bf16")] * bf16:
            try:  # the first is searched in full, the others with its Python and allocator
                self.rivals.append(Rival(self, *work, self.rivals[0] if self.rivals else None))
                self.rivals[-1].end()
                self.so_far["chosen"] = [rival.chosen() for rival in self.rivals]
            except PeerError as error:
                self.notes.append(str(error))
                if not self.rivals:
                    note(f"{error}; ours is measured alone (--peer PYTHON names another)")
                    return
        for rival in list(self.rivals):
            progress(f"starting {rival.label()}")
            self.attempt(rival, rival.build)

    def attempt(self, rival, work, *given):
        try:
            return work(*given)
        except (PeerError, KeyError, IndexError, TypeError, StopIteration) as error:
            self.notes.append(f"{rival.form} {rival.precision}: {error}")
            rival.end()
            self.rivals.remove(rival)
            return None

    def in_turn(self):
        burst, product = self.seconds
        for rival in list(self.rivals):
            self.attempt(rival, rival.run, burst)
        for rival in self.rivals[:1]:
            products = self.attempt(rival, rival.products, self.products, product)
            return {"products": products} if products else None

    def shown(self, row, text):
        self.so_far = None
        if not row["complete"]:
            row.setdefault("chosen", [rival.chosen() for rival in self.rivals])
            return text
        row["peers"] = []
        for rival in list(self.rivals):
            found = self.attempt(rival, rival.found, row)
            if found:
                row["peers"].append(dict(found, label=rival.label()))
        self.end()
        row["notes"] += self.notes
        head, ours, memory, *rest = text
        notes = "".join(paragraph(f"note: {one}") for one in row["notes"])
        return [head.rstrip("\n") + "\n", notes + "\n", ours, *(line(row, peer) for peer in row["peers"]),
                *(said(row, peer) for peer in row["peers"]), memory, *rest]

    def summary(self, rows):
        return summary(rows)

    def end(self):
        for rival in self.rivals:
            rival.end()
