# SPDX-License-Identifier: MIT
"""tools/bench/compare.py without other software: its figures, its table, and children that fail. Run by tests/bench.sh."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/bench"))

import compare  # noqa: E402


class Figures(unittest.TestCase):
    def test_medians_and_three_figures(self):
        spreads = [compare.spread(values) for values in ([5, 1, 9, 3, 100], [4, 1, 2, 8])]
        self.assertEqual([s["median"] for s in spreads], [5, 3])
        self.assertEqual((spreads[0]["least"], spreads[0]["most"]), (1, 100))
        shown = [compare.figures(x) for x in (1234.4, 312.4, 99.95, 99.94, 9.995, 9.994, 0.026)]
        self.assertEqual(shown, ["1234", "312", "100", "99.9", "10.0", "9.99", "0.03"])

    def test_eighty_columns(self):
        theirs = {"seconds": {"median": 0.5, "least": 0.45, "most": 6}, "ratio": 2.0, "peak_bytes": 2**32,
                  "said": "compiled-sdpa; loss 8.98765, norm 12345.67891, after an update 8.90000; and so on"}
        text = compare.line("PyTorch, joint", {"amount": 2048, "unit": "tokens"}, theirs) + compare.said(theirs)
        self.assertRegex(text, r"^  PyTorch, joint +500 +450 - 6000 +4096 tokens/s +2.00\n    compiled")
        self.assertIn("; 4096 MiB", text)
        self.assertLessEqual(max(map(len, text.split("\n"))), 80)

    def test_what_stands_beside(self):
        about = {"threads": 2, "device": "cuda", "forms": ["split", "joint"]}
        found = compare.rivals("train", about)
        self.assertEqual([name for name, *_ in found], ["PyTorch, split", "PyTorch, joint"])
        self.assertNotIn("MALLOC_TOP_PAD_", found[0][2])
        self.assertEqual(compare.rivals("decode", about), [])  # of a UniVAE nothing


class Children(unittest.TestCase):
    def fails(self, why, code):
        with self.assertRaisesRegex(compare.PeerError, why):
            self.peer(code).ask("turn", work="x")

    def peer(self, code):
        file = tempfile.NamedTemporaryFile("w", suffix=".py")
        self.addCleanup(file.close)
        file.write(code)
        file.flush()
        found = compare.Peer(sys.executable, file.name, {})
        self.addCleanup(found.end)
        return found

    def test_answers_and_failures(self):
        answer = "import sys, json\nfor line in sys.stdin: print(json.dumps({'asked': json.loads(line)}), flush=True)"
        self.assertEqual(self.peer(answer).ask("turn", work="x"), {"asked": {"do": "turn", "work": "x"}})
        self.fails('ended at "turn"; it said: .*no such thing', "raise SystemExit('no such thing')")
        self.fails("which is no JSON", "print('hello', flush=True)\ninput()\ninput()")
        self.fails("cannot turn: out of memory", "print('{\"error\": \"out of memory\"}', flush=True)\ninput()\ninput()")
        with self.assertRaisesRegex(compare.PeerError, "does not start"):
            compare.Peer("/nowhere/python", "train_peer.py", {})


if __name__ == "__main__":
    unittest.main()
