# SPDX-License-Identifier: MIT
"""tools/bench/compare.py without other software: its search, its checks, its tables, and children that fail. Run by
tests/bench.sh."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/bench"))

import children  # noqa: E402
import compare_train as train  # noqa: E402
import compare_train_report as report  # noqa: E402

AXES = {"memory": ["plain", "missing", "kept"], "mode": ["slow", "fast"]}


class Work:
    """8 seconds, less for the better choices; one that is missing has none."""

    def __init__(self):
        self.asked, self.limits = [], []

    def __call__(self, variant, limit):
        self.asked.append(variant)
        self.limits.append(limit)
        if variant["memory"] == "missing":
            return {"failed": "not here"}
        return {"seconds": 8 - 2 * (variant["memory"] == "kept") + {"fast": -1, "slow": 1}[variant["mode"]]}


class Search(unittest.TestCase):
    def test_one_axis_after_the_other(self):
        work, tried = Work(), []
        best = train.search(AXES, work, tried)
        self.assertEqual(best, {"variant": {"memory": "kept", "mode": "fast"}, "seconds": 5})
        self.assertEqual(len(work.asked), 4)  # one for the first choices, one for each further one
        self.assertEqual(tried[1]["failed"], "not here")
        self.assertIsNone(work.limits[0])
        self.assertLess(work.limits[-1], 12)

    def test_the_limit_comes_from_the_fastest_of_all(self):
        work, tried = Work(), [{"variant": {"memory": "another program's"}, "seconds": 1}]
        self.assertEqual(train.search(AXES, work, tried)["seconds"], 1)
        self.assertTrue(all(limit < 1.5 for limit in work.limits))

    def test_where_the_first_choices_fail(self):
        best = train.search({"memory": ["missing", "plain"], "mode": ["fast"]}, Work(), [])
        self.assertEqual(best["variant"]["memory"], "plain")
        tried = []
        self.assertIsNone(train.search({"memory": ["missing"], "mode": ["slow", "fast"]}, Work(), tried))
        self.assertEqual(len(tried), 2)

    def test_settings_by_name(self):
        self.assertEqual(train.named(""), {})
        found = train.named("mode=layers compiled,attention=sdpa")
        self.assertEqual(found, {"mode": "layers compiled", "attention": "sdpa"})
        for wrong in ("mode", "mode=", "mode=fast", "sdpa", "=", "mode=eager,loss=sdpa"):
            with self.assertRaisesRegex(ValueError, "attention=explicit.sdpa, optimiser=single."):
                train.named(wrong)

    def test_what_is_chosen_beside_another_form(self):
        axes = train.axes_of(False, "cpu", True, {}, {"allocator": "glibc", "optimiser": "fused", "loss": "logits"})
        self.assertEqual((axes["allocator"], axes["attention"]), (["glibc"], ["explicit", "sdpa"]))
        self.assertEqual(axes["mode"], ["eager"])
        self.assertEqual(train.axes_of(True, "cuda", False, {"mode": "compiled"}, None)["mode"], ["compiled"])


class Figures(unittest.TestCase):
    def test_medians_and_three_figures(self):
        self.assertEqual((children.median([5, 1, 9, 3, 100]), children.median([4, 1, 2, 8])), (5, 3))
        shown = [children.figures(x) for x in (1234.4, 312.4, 99.95, 99.94, 9.995, 9.994, 0.026)]
        self.assertEqual(shown, ["1234", "312", "100", "99.9", "10.0", "9.99", "0.03"])

    def test_what_agrees(self):
        self.assertTrue(train.agree(9.0, 9.00008, 1e-5))
        self.assertFalse(train.agree(9.0, 9.0002, 1e-5))

    def test_eighty_columns(self):
        check = {"loss": 8.98765, "norm": 12345.67891, "next": 8.9}
        peer = {"label": "PyTorch, no master", "version": "2.15.0+cu132, Python 3.11.7", "agrees": False,
                "python": "/a/folder/of/somebody/bin/python3", "check": check, "faults_per_step": 12345.0, "ratio": 2.0,
                "settings": "layers compiled, explicit attention, chunked loss, fused AdamW, glibc, tuned",
                "seconds": {"median": 0.5, "least": 0.45, "most": 6}, "tokens_per_second": 4096, "peak_bytes": 2**32}
        row = {"mark": "univae-default", "precision": "bf16", "device": "cpu", "sentences": 32, "complete": True,
               "ours": {"check": check, "tokens_per_second": 8192}, "floor": {"share_of_step": 0.8}, "peers": [peer]}
        self.assertRegex(report.line(row, peer), r"500 +450 - 6000 +4096 +64.0 +2.00 +4096")
        self.assertIn("does NOT compute the same", report.said(row, peer))
        summary = report.summary([row, {"complete": False}])
        self.assertRegex(summary, r"univae-default +bf16 +8192 +PyTorch, no master +4096 +2.00 +80")
        self.assertLessEqual(max(map(len, (report.said(row, peer) + summary).split("\n"))), 80)


class Children(unittest.TestCase):
    def peer(self, code):
        file = tempfile.NamedTemporaryFile("w", suffix=".py")
        self.addCleanup(file.close)
        file.write(code)
        file.flush()
        found = children.Peer(sys.executable, file.name, {})
        self.addCleanup(found.end)
        return found

    def fails(self, why, code, patience=60):
        with self.assertRaisesRegex(children.PeerError, why):
            self.peer(code).ask("run", patience, work="x")

    def test_answers_and_failures(self):
        answer = "import sys, json\nfor line in sys.stdin: print(json.dumps({'asked': json.loads(line)}), flush=True)"
        self.assertEqual(self.peer(answer).ask("run", work="x"), {"asked": {"do": "run", "work": "x"}})
        self.fails('ended at "run"; it said: .*no such thing', "raise SystemExit('no such thing')")
        self.fails("which is no JSON", "print('hello', flush=True)\ninput()\ninput()")
        self.fails("cannot run: out of memory", "print('{\"error\": \"out of memory\"}', flush=True)\ninput()\ninput()")
        self.fails('gave no answer to "run" in 0.3 s', "import time\ntime.sleep(60)", 0.3)
        with self.assertRaisesRegex(children.PeerError, "does not start"):
            children.Peer("/nowhere/python", "train_peer.py", {})


if __name__ == "__main__":
    unittest.main()
