#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets tools/bench.py race small scripts that pretend to measure, and reads what it writes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

FAKE = """#!/bin/sh
[ "$1" = works ] && {{ printf '%s\\n' {works}; exit 0; }}
echo {name} >>{log}
echo "told to $2 by $3, $4"
printf '{{"work":"%s","system":"{system}","version":"1 ","workers":%s,' "$2" "$3"
printf '"metric":"m","unit":"ns","value":%s}}\\n' {value}
exit {code}
"""


class Race(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.runners, self.benches = [], []

    def fake(self, name, system, value, works="'spawn 0'", code=0):
        path = self.root / name
        path.write_text(FAKE.format(name=name, system=system, value=value, works=works, code=code,
                                    log=self.root / "log"))
        path.chmod(0o755)
        self.runners.append(str(path))

    def race(self, only, missing=()):
        """(exit code, what was printed, the results)"""
        listing = {"benches": self.benches, "runners": self.runners, "missing": list(missing)}
        (self.root / "programs.json").write_text(json.dumps(listing))
        out = self.root / "out" / "results.json"
        done = subprocess.run(
            [sys.executable, str(TOP / "tools" / "bench.py"), str(self.root / "programs.json"),
             str(out)], env=os.environ | {"ONLY": only, "QUICK": "1"}, capture_output=True,
            text=True, check=False)
        results = json.loads(out.read_text()) if out.is_file() else None
        return done.returncode, done.stdout, results

    def test_programs_take_turns(self):
        self.fake("a", "janusrt", "10")
        self.fake("b", "Other", "20")
        code, _, _ = self.race("spawn")
        self.assertEqual(code, 0)
        self.assertEqual((self.root / "log").read_text().split(), ["a", "b"] * 10)

    def test_a_result_has_all_fields_and_the_ratio_is_to_ours(self):
        self.fake("a", "janusrt", "10")
        self.fake("b", "Other", "25")
        _, text, results = self.race("spawn")
        self.assertEqual(len(results), 4)
        self.assertEqual(results[1], {
            "work": "spawn", "system": "Other", "version": "1", "workers": 1, "metric": "m",
            "unit": "ns", "min": 25, "median": 25, "runs": 5})
        self.assertIn("2.50 x", text)

    def test_a_work_runs_only_with_workers_that_a_program_allows(self):
        self.fake("a", "janusrt", "10", works="'spawn 1' 'fib 0'")
        _, _, results = self.race("spawn")
        self.assertEqual([r["workers"] for r in results], [1])

    def test_a_program_that_fails_is_told_and_not_tried_again(self):
        self.fake("a", "janusrt", "10")
        self.fake("b", "Other", "20", code=3)
        code, text, _ = self.race("spawn")
        self.assertEqual(code, 1)
        self.assertIn("b: ended with 3", text)
        self.assertEqual((self.root / "log").read_text().split().count("b"), 2)

    def test_a_work_that_does_not_exist_is_refused(self):
        code, text, results = self.race("spawm")
        self.assertEqual((code, results), (2, None))
        self.assertIn("no such work: spawm", text)

    def test_a_bench_runs_when_it_is_named_and_may_be_called_as_a_work_is(self):
        self.fake("a", "janusrt", "10", works="'million 0'")
        self.benches = [self.runners[0].replace("/a", "/million_bench")]
        os.link(self.runners[0], self.benches[0])
        self.assertNotIn("million_bench:", self.race("million")[1])
        self.assertIn("million_bench:", self.race("million_bench")[1])

    def test_what_is_missing_is_named_in_a_line(self):
        self.fake("a", "janusrt", "10")
        _, text, _ = self.race("spawn", ["Go (golang-go)"])
        self.assertIn("not here, left out: Go (golang-go)\n", text)


if __name__ == "__main__":
    unittest.main()
