# SPDX-License-Identifier: MIT
"""tools/bench/compare.py without other software: peers that answer and peers that fail. Run by tests/bench.sh."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/bench"))

import compare  # noqa: E402


class Children(unittest.TestCase):
    def fails(self, why, code):
        with self.assertRaisesRegex(compare.PeerError, why):
            self.peer(code).ask("turn", work="x")

    def peer(self, code):
        file = tempfile.NamedTemporaryFile("w", suffix=".py")
        self.addCleanup(file.close)
        file.write(code)
        file.flush()
        found = compare.Peer(sys.executable, file.name, 1)
        self.addCleanup(found.end)
        return found

    def test_answers_and_failures(self):
        answer = "import sys, json\nfor line in sys.stdin: print(json.dumps({'asked': json.loads(line)}), flush=True)"
        self.assertEqual(self.peer(answer).ask("turn", work="x"), {"asked": {"do": "turn", "work": "x"}})
        self.fails('ended at "turn"; it said: .*no such thing', "raise SystemExit('no such thing')")
        self.fails("which is no JSON", "print('hello', flush=True)\ninput()\ninput()")
        self.fails("cannot turn: out of memory", "print('{\"error\": \"out of memory\"}', flush=True)\ninput()\ninput()")
        with self.assertRaisesRegex(compare.PeerError, "does not start"):
            compare.Peer("/nowhere/python", "train_peer.py", 1)


if __name__ == "__main__":
    unittest.main()
