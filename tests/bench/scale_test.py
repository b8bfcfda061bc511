#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the simulated machine of bench/scale with its usual costs: scale_test.py DIRECTORY."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "bench" / "scale"))
import report  # noqa: E402

SMALL = {"fib": 20, "mpmc": 10, "echo": 5}


def run(work, workers, size=None, **costs):
    return report.simulate(DIRECTORY, work, workers, costs, size or SMALL[work])


class Scale(unittest.TestCase):
    def test_equal_runs(self):
        for work in SMALL:
            with self.subTest(work):
                first, second = run(work, 4), run(work, 4)
                self.assertEqual((first.ps, first.found), (second.ps, second.found))

    def test_one_worker_meets_nobody(self):
        near, far = run("mpmc", 1), run("mpmc", 1, transfer=200000, far=200000)
        self.assertLess(far.ps, near.ps * 1.1)

    def test_transfers_cost_messages(self):
        near = run("mpmc", 2, 50)
        far = run("mpmc", 2, 50, transfer=40000, far=40000, linger=22800)
        self.assertGreater(far.ps, near.ps * 1.2)
        # Where transfers cost little, the tasks gather on one worker: [herd-gather].
        self.assertIn("channel.lock", far.found[0][2])
        self.assertGreater(far.found[0][0], report.BUSY)

    def test_fib_divides(self):
        speed_up = run("fib", 1, 25).ps / run("fib", 8, 27).ps
        self.assertGreater(speed_up, 4)
        self.assertLess(speed_up, 8)

    def test_membarrier_is_a_queue(self):
        cheap = run("fib", 32, 26, heavy_first=0, heavy_each=0, stolen=0)
        dear = run("fib", 32, 26, heavy_first=50000000, heavy_each=500000)
        self.assertGreater(dear.ps, cheap.ps * 1.15)
        self.assertEqual(dear.found[0][2], "membarrier")

    def test_echo_uses_all_workers(self):
        self.assertGreater(run("echo", 1, 20).ps / run("echo", 4, 20).ps, 1.5)


if __name__ == "__main__":
    DIRECTORY = sys.argv.pop(1)
    unittest.main()
