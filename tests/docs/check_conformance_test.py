#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Feeds tools/check_conformance.py small trees, each with one breach, and looks for the message."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import check_conformance  # noqa: E402

TREE = {
    "tests/CMakeLists.txt": "janus_test(task/one_test.c)\njanus_script(abi/two_test two_test.sh)\n",
    "tests/task/one_test.c": 'TEST("a task "\n     "runs")\n{\n}\n'
                             'TEST("a task runs twice; nobody knows why")\n{\n}\n',
    "tests/abi/two_test.sh": "# No symbol is missing.\n",
    "docs/requirements.txt": "# A comment.\nSCHED:1.1/a  Tasks run.\nG:b  Symbols.\nC1  Later.\n",
    "docs/conformance.md": "# Conformance\n\n| id | what holds | proved by |\n|---|---|---|\n"
                           "| SCHED:1.1/a | Runs. | `task/one_test`: a task runs; "
                           "`task/one_test`: a task runs twice; nobody … |\n"
                           "| G:b | All. | `abi/two_test`: No symbol is missing. |\n"
                           "| C1 | Later. | not yet: io |\n\n"
                           "- Tasks: `task/one_test`: a task runs twice; nobody knows why\n",
}


class Conformance(unittest.TestCase):
    def said(self, path, old, new):
        """What is wrong with the tree once `old` became `new` in one file."""
        tree = dict(TREE)
        self.assertIn(old, tree[path])
        tree[path] = tree[path].replace(old, new, 1)
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, tree)
            return check_conformance.check(folder)

    def write(self, folder, tree):
        for name, text in tree.items():
            file = pathlib.Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def one(self, old, new, message, path="docs/conformance.md"):
        complaints, _ = self.said(path, old, new)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(message, complaints[0])

    def test_a_tree_without_a_breach_is_counted(self):
        complaints, lines = self.said("docs/conformance.md", "Runs.", "Runs.")
        self.assertEqual(complaints, [])
        self.assertEqual(lines, ["requirements 2: 2 proved, 0 in part, 0 not yet",
                                 "decisions 1: 0 proved, 0 in part, 1 not yet (missing: io 1)"])

    def test_a_row_with_both_is_proved_in_part(self):
        _, lines = self.said("docs/conformance.md", "missing. |", "missing.; not yet: io |")
        self.assertEqual(lines[0], "requirements 2: 1 proved, 1 in part, 0 not yet (missing: io 1)")

    def test_an_id_without_a_row_is_told(self):
        self.one("| C1 | Later. | not yet: io |\n", "", "C1: no row")

    def test_an_id_with_two_rows_is_told(self):
        self.one("| C1 |", "| C1 | Later. | not yet: io |\n| C1 |", "C1: 2 rows")

    def test_an_unknown_id_is_told(self):
        self.one("G:b  Symbols.\n", "", "G:b: not in requirements.txt", "docs/requirements.txt")

    def test_a_doubled_id_of_the_list_is_told(self):
        self.one("G:b ", "G:b  Again.\nG:b ", "G:b: twice", "docs/requirements.txt")

    def test_a_sentence_that_no_test_has_is_told(self):
        self.one("a task runs;", "a task ran;", "task/one_test has no sentence: a task ran")
        self.one("No symbol is missing. |", "No symbol. |", "does not contain: No symbol.")

    def test_a_list_names_tests_too(self):
        self.one("knows why\n", "knows\n", "task/one_test has no sentence: a task runs twice;")

    def test_a_beginning_must_be_that_of_one_sentence(self):
        self.one("a task runs;", "a task runs …;", "2 sentences begin so")
        self.one("a task runs;", "a …;", "sentences begin so")

    def test_a_test_that_is_not_there_or_not_run_is_told(self):
        self.one("`abi/two_test`", "`abi/three_test`", "there is no test abi/three_test")
        self.one("abi/two_test ", "", "no CMake file in tests/ runs abi/two_test",
                 "tests/CMakeLists.txt")

    def test_an_area_must_be_known(self):
        self.one("not yet: io", "not yet: one day", "neither `test`: sentence, nor not yet")
        self.one("not yet: io", "-", "neither `test`: sentence, nor not yet")

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_the_table_follows_a_sentence_and_a_file(self):
        tests = ('TEST("a task runs") { run(1); }\nTEST("a task runs twice; nobody knows why")\n'
                 '{\n    run(2);\n}\n')
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, {**TREE, "tests/task/one_test.c": tests})
            for words in (["init", "-q"], ["add", "-A"],
                          ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one"]):
                subprocess.run(["git", "-C", folder, *words], check=True)
            pathlib.Path(folder, "tests/task/one_test.c").unlink()
            self.write(folder, {"tests/task/two_test.c": tests.replace("a task runs\"", "it ran\""),
                                "tests/CMakeLists.txt": "task/two_test abi/two_test\n"})
            self.write(folder, {"docs/conformance.md": TREE["docs/conformance.md"].replace(
                "nobody …", "nobody knows why"),
                "tools/labels.txt":
                    "a-b: tests/task/one_test.c: a task runs\nc-d: a choice: why\n"})
            check_conformance.follow(folder, "HEAD")
            self.assertEqual(check_conformance.check(folder)[0], [])
            self.assertIn("`task/two_test`: it ran; `task/two_test`: a task runs twice; nobody",
                          pathlib.Path(folder, "docs/conformance.md").read_text("utf-8"))
            self.assertEqual(pathlib.Path(folder, "tools/labels.txt").read_text("utf-8"),
                             "a-b: tests/task/two_test.c: it ran\nc-d: a choice: why\n")


if __name__ == "__main__":
    unittest.main()
