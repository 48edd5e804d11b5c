# SPDX-License-Identifier: MIT
"""What stands beside ours in the cases with one row for each piece of work: each asks a peer, in its turn."""
from children import Peer, PeerError, figures, median, note, progress, spread


class Beside:
    """Other software beside ours. One that fails once is not asked again, and ours is measured on alone."""

    script = ""

    def __init__(self, options, head):
        self.options, self.json, self.head, self.so_far = options, head, [], None
        self.device = "cuda" if "driver" in head else "cpu"
        self.threads = head["machine"]["threads"]
        self.peer, self.version, self.about, self.runs = None, None, None, []
        self.open()

    def open(self):
        """The first Python that can."""
        why = ""
        for python in self.options.peers:
            try:
                environment = {"OMP_NUM_THREADS": str(self.threads), "HF_HUB_OFFLINE": "1"}
                self.peer = Peer(python, self.script, environment)
                self.version = self.peer.ask("start", device=self.device, threads=self.threads)["version"]
                self.json["peer"], self.head = self.version, [f"peer        {self.version}"]
                return
            except PeerError as error:
                self.peer, why = None, error
        note(f"{why}; ours is measured alone (--peer PYTHON names another)")

    def attempt(self, work, *given):
        if not self.peer:
            return None
        try:
            return work(*given)
        except (PeerError, KeyError, IndexError, TypeError, ValueError) as error:
            told = error if isinstance(error, PeerError) else f"the peer's answer is not what was asked for: {error!r}"
            note(told)
            self.end()
            self.peer, self.runs = None, []
            return None

    def ready(self, about):
        self.about, self.runs = about, []
        self.attempt(self.start)

    def in_turn(self):
        if self.about:
            self.attempt(self.turn)

    def shown(self, row, lines):
        if self.about and self.runs:
            self.add(row, lines)
        self.about = None
        return lines

    def start(self):
        pass

    def header(self, columns):
        return columns

    def summary(self, rows):
        return ""

    def end(self):
        if self.peer:
            self.peer.end()


class Attention(Beside):
    script = "attention_peer.py"

    def header(self, columns):
        return columns + (f"{'PyTorch, ms':>12}{'ratio':>9}" if self.version else "")

    def turn(self):
        self.runs.append(self.peer.ask("run", **self.about))

    def add(self, row, lines):
        for i, way in enumerate(("forward", "both")):
            theirs = [run[way] for run in self.runs]
            row[way].update(peer=theirs, ratio=median(theirs) / row[way]["seconds"])
            lines[i] = f"{lines[i].rstrip()}{1e3 * median(theirs):>12.3f}{figures(row[way]['ratio']):>9}\n"
        ours, theirs = row["check"], {name: self.runs[-1][name] for name in ("y", "dq")}
        tolerance = 2e-2 if row["precision"] == "bf16" else 1e-4
        row["peer_check"] = theirs
        row["agrees"] = all(abs(ours[k] - theirs[k]) <= tolerance * abs(theirs[k]) for k in theirs)
        if not row["agrees"]:
            note(f"WARNING: PyTorch does NOT compute the same: means of |y| and |dq| {ours}, PyTorch {theirs}")


class Decode(Beside):
    script = "decode_peer.py"

    def start(self):
        progress("generate, its ways")
        about = dict(self.about)
        self.written = about.pop("written")
        self.found = self.peer.ask("load", **about)
        theirs = self.peer.ask("written")
        ids, scores = theirs["ids"], theirs["scores"]
        self.found["same_targets"] = sum(one == ours[0] for one, ours in zip(ids, self.written))
        errors = [abs(one - ours[1]) for one, ours in zip(scores or (), self.written)]
        self.found["score_error"] = max(errors) if errors else None

    def turn(self):
        self.runs.append(self.peer.ask("run")["seconds"])

    def add(self, row, lines):
        rate = row["sources"] / median(self.runs)
        ratio = median([theirs / ours for theirs, ours in zip(self.runs, row["runs"])])
        row["peer"] = dict(
            self.found, seconds=median(self.runs), runs=self.runs, sentences_per_second=rate, ratio=ratio
        )
        cells = [f"{'generate':>13}{'ratio':>8}", f"{figures(rate):>13}{figures(ratio):>8}"]
        lines[:] = [one and one[:-1] + more + "\n" for one, more in zip(lines, cells)]  # the names of columns come once
        same, error = self.found["same_targets"], self.found["score_error"]
        if same < row["sources"] or (error or 0) > 1e-5:
            note(f"generate writes {same} of {row['sources']} targets as ours does; scores of the best differ by up to "
                 f"{error}")


class Tokenizer(Beside):
    """A child for each number of threads, since the library fixes them when it starts."""

    script = "tokenizer_peer.py"

    def open(self):
        self.children, self.text, self.calls = {}, None, ""
        self.peer = self

    def child(self, python, threads):
        environment = {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false", "RAYON_NUM_THREADS": str(threads)}
        peer = Peer(python, self.script, environment)
        found = peer.ask("start", self.patience, **self.text)
        self.version = f"{found['version']}, Python {found['python']}"
        return peer

    def ready(self, about):
        if "text" in about:
            return self.begin(about)
        super().ready(about)

    def begin(self, text):
        self.text, self.patience = text, 60 + 30 * text["bytes"] / 1e6
        progress("comparing ids")
        why = ""
        for self.python in self.options.peers:
            try:
                self.children[1] = self.child(self.python, 1)
                ids = self.children[1].ask("compare", self.patience)
                break
            except PeerError as error:
                why = error
        else:
            self.peer = self.version = None
            return note(f"{why}; ours is measured alone (--peer PYTHON names another)")
        said = f"equal to the peer's in every line, by its rules: {ids['peer_tokens']} tokens"
        if ids["different_lines"]:
            said = (f"NOT the peer's: {ids['different_lines']} lines differ, first line {ids['first_different_line']}; "
                    f"{ids['tokens']} tokens, peer {ids['peer_tokens']}")
        self.json.update(peer={"name": "Hugging Face tokenizers", "version": self.version}, ids=ids)
        self.head = [f"peer        Hugging Face tokenizers {self.version}", f"ids         {said}"]

    def header(self, columns):
        if not self.version:
            return columns
        return f"{'':22}{'ours':>7}{'':22}{'peer':>8}\n{columns}{'MB/s':>8}{'range':>13}{'ratio':>7}"

    def start(self):
        threads = self.about["threads"]
        progress(f"{self.about['label']}: trying the peer's calls")
        if threads not in self.children:
            self.children[threads] = self.child(self.python, threads)
        self.call = self.children[threads].ask("choose", self.patience, work=self.about["work"])

    def turn(self):
        child = self.children[self.about["threads"]]
        self.runs.append(child.ask("run", self.patience, work=self.about["work"])["seconds"])

    def add(self, row, lines):
        seconds, megabytes = spread(self.runs), row["bytes"] / 1e6
        row["peer"] = dict(self.call, seconds=seconds, runs=self.runs)
        row["ratio"] = seconds["median"] / row["ours"]["seconds"]["median"]
        cells = {name: 1e3 * value for name, value in seconds.items()}
        if megabytes:
            cells = {"median": megabytes / seconds["median"], "least": megabytes / seconds["most"],
                     "most": megabytes / seconds["least"]}
            row["peer"]["mb_per_second"] = cells["median"]
        if row["tokens"]:
            row["peer"]["million_tokens_per_second"] = row["tokens"] / 1e6 / seconds["median"]
        between = f"{figures(cells['least'])} - {figures(cells['most'])}"
        ratio = figures(row["ratio"])
        lines[0] = f"{lines[0].rstrip()}{figures(cells['median']):>8}{between:>13}{ratio:>7}\n"
        self.calls += f"{self.about['label']:<22}{self.call['call']}\n"

    def summary(self, rows):
        return f"\nthe peer's fastest calls\n{self.calls}" if self.calls else ""

    def end(self):
        for child in self.children.values():
            child.end()
