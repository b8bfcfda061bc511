#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets tools/bench.py race small scripts that pretend to measure, and reads what it writes."""

import contextlib
import io
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import bench  # noqa: E402
import bench_charts  # noqa: E402
import bench_peers  # noqa: E402
import bench_table  # noqa: E402
import bench_targets  # noqa: E402

FIELDS = ["work", "system", "version", "workers", "metric", "unit", "min", "median", "runs"]

# Tells values[0] in its first run, values[1] in its second, and so on, then from the start again.
FAKE = """#!/bin/sh
[ "$1" = works ] && {{ printf '%s\\n' {works}; exit 0; }}
echo {name} >>{log}
set -- "$2" "$3" "$4" {values}
work=$1 workers=$2 turn=$(grep -cx {name} {log})
shift 3
shift $(( (turn - 1) % $# ))
echo "told to $work by $workers"
printf '{{"work":"%s","system":"{system}","version":"1 ","workers":%s,' "$work" "$workers"
printf '"metric":"m","unit":"ns","value":%s}}\\n' "$1"
{end}
"""


class Race(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out, self.charts = self.root / "out" / "results.json", self.root / "charts"
        self.listing = {"benches": [], "ours": [], "not_quick": [], "peers": [], "missing": []}

    def fake(self, name, system, *values, works="'spawn 0'", end="exit 0"):
        path = self.root / name
        path.write_text(FAKE.format(name=name, system=system, works=works, end=end,
                                    values=" ".join(str(v) for v in values),
                                    log=self.root / "log"))
        path.chmod(0o755)
        self.listing["ours" if system == "janusrt" else "peers"].append(str(path))
        return str(path)

    def arguments(self):
        listing = self.root / "programs.json"
        listing.write_text(json.dumps(self.listing))
        return [str(listing), str(self.out), str(self.charts)]

    def race(self, only="spawn", flags=(), **environment):
        """(exit code, what was printed, the results)"""
        settings = {"ONLY": only, "QUICK": "1", "CHARTS": "", "BEFORE": ""} | environment
        text = io.StringIO()
        with unittest.mock.patch.dict(os.environ, settings), contextlib.redirect_stdout(text):
            code = bench.main([*flags, *self.arguments()])
        results = json.loads(self.out.read_text()) if self.out.is_file() else None
        return code, text.getvalue(), results

    def order(self):
        return "".join((self.root / "log").read_text().split())


class Turns(Race):
    def test_programs_take_turns_for_five_rounds(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.fake("b", "Other", 20, works="'spawn 1'")
        self.fake("c", "Third", 30, works="'spawn 1'")
        self.assertEqual(self.race()[0], 0)
        self.assertEqual(self.order(), "abc" * 5)

    def test_a_work_runs_only_with_workers_that_a_program_allows(self):
        self.fake("a", "janusrt", 10, works="'spawn 1' 'fib 0'")
        self.assertEqual([r["workers"] for r in self.race()[2]], [1])

    def test_what_takes_long_to_build_is_not_in_quick_runs(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.listing["not_quick"] = [self.fake("b", "unchecked", 9, works="'spawn 1'")]
        self.listing["peers"].clear()
        self.race()
        self.assertEqual(self.order(), "a" * 5)
        self.race(QUICK="0")
        self.assertEqual(self.order(), "a" * 5 + "ab" * 5)

    def test_a_work_that_takes_very_long_has_fewer_rounds_in_full_runs_and_says_so(self):
        self.fake("a", "janusrt", 10, works="'sleepers 1'")
        _, text, results = self.race("sleepers", QUICK="")
        self.assertEqual([r["runs"] for r in results], [1])
        self.assertIn("rounds: 1, as it takes very long", text)
        self.assertEqual([r["runs"] for r in self.race("sleepers")[2]], [5])


class Numbers(Race):
    def test_a_result_has_all_fields_in_order(self):
        self.fake("a", "janusrt", 10, 11, 14, 12, 90, works="'spawn 1'")
        self.assertEqual(list(self.race()[2][0]), FIELDS)
        self.assertEqual(self.race()[2], [
            {"work": "spawn", "system": "janusrt", "version": "1", "workers": 1, "metric": "m",
             "unit": "ns", "min": 10, "median": 12, "runs": 5}])

    def test_the_ratio_is_that_of_the_minimum_to_ours(self):
        self.fake("a", "janusrt", 12, 10, works="'spawn 1'")
        self.fake("b", "Other", 25, 100, works="'spawn 1'")
        lines = [line.split() for line in self.race()[1].splitlines() if "Other 1  " in line]
        self.assertEqual(lines[0], ["Other", "1", "25.00", "25.00", "5", "2.50", "x"])

    def test_the_end_tells_who_won_against_the_best_of_the_others(self):
        self.fake("a", "janusrt", 10, works="'spawn 1' 'fib 1'")
        self.fake("b", "Slow", 40, works="'spawn 1' 'fib 1'")
        self.fake("c", "Fast", 5, works="'fib 1'")
        self.fake("d", "unchecked", 1, works="'spawn 1'")
        text = self.race("spawn,fib")[1]
        self.assertIn("1 of 2 won", text)
        self.assertRegex(text, r"spawn, 1 .* 10 ns +40 Slow 1 +4.00 x +won")
        self.assertRegex(text, r"fib, 1 .* 10 ns +5 Fast 1 +0.50 x +lost")


    def test_a_run_that_is_broken_off_has_what_it_measured(self):
        self.fake("a", "janusrt", 10, works="'fib 1' 'yield 1'")
        with unittest.mock.patch.object(bench, "show", side_effect=[None, KeyboardInterrupt]):
            with self.assertRaises(KeyboardInterrupt):
                self.race("fib,yield")
        self.assertEqual([r["work"] for r in json.loads(self.out.read_text())], ["yield"])


class Pairs(Race):
    """The works with servers, whose contestants measure ratios to raw epoll in pairs."""

    def paired(self, name, system, *values, measure="CPU", unit="x raw epoll", **more):
        path = pathlib.Path(self.fake(name, system, *values, works="'accept 1'", **more))
        path.write_text(path.read_text().replace('"metric":"m"', f'"metric":"64: {measure}"')
                        .replace('"unit":"ns"', f'"unit":"{unit}"'))

    def test_a_ratio_of_pairs_is_judged_by_its_median(self):
        self.paired("a", "janusrt", 1.0, 1.2, 1.2, 1.2, 1.2)
        self.paired("b", "Other", 1.1)
        text = self.race("accept")[1]
        self.assertRegex(text, r"accept, 1 +64: CPU +1.2 x raw epoll +1.1 Other 1 +0.92 x +lost")

    def test_a_situation_is_one_table_with_all_medians_and_the_minima_of_ratios(self):
        self.paired("a", "janusrt", 1.25, 1, 1.25)
        self.paired("b", "janusrt", 4000, measure="CPU time", unit="ns")
        self.paired("c", "raw epoll", 1)
        text = self.race("accept")[1]
        self.assertRegex(text, r"accept, 1 worker: 64; medians of 5, and in brackets minima\n +"
                               r"CPU, x raw epoll  CPU time, ns\n  raw epoll 1 +1.00 \(1.00\)\n  "
                               r"janusrt 1 +1.25 \(1.00\) +4000.00\n")

    def test_raw_epoll_is_a_floor_and_cannot_be_the_fastest(self):
        self.paired("a", "janusrt", 1.2)
        self.paired("b", "raw epoll", 1.0)
        self.assertNotIn("won", self.race("accept")[1])

    def test_a_note_of_a_program_stands_below_the_table_once(self):
        self.paired("a", "janusrt", 1.2, end="echo note: no calls counted >&2; exit 0")
        self.paired("b", "Other", 1.0, end="echo note: no calls counted >&2; exit 0")
        self.assertEqual(self.race("accept")[1].count("  no calls counted\n"), 1)


class Targets(Race):
    def told(self, metric, system, unit, value, workers=1):
        return {"work": "http", "system": system, "version": "1", "workers": workers,
                "metric": metric, "unit": unit, "min": value - 1, "median": value, "runs": 5}

    def test_a_target_is_judged_by_the_median_and_names_the_peer(self):
        self.assertEqual(bench_targets.verdicts([
            self.told("hello, 64 connections: CPU", "janusrt", "x raw epoll", 1.1),
            self.told("hello, 64 connections: ours", "nginx", "x its CPU", 0.76)]), [
                "target: hello, 64 connections: CPU: 1.1 of at most 1.1 x raw epoll: held",
                "target: hello, 64 connections: ours, nginx: 0.76 of at most 0.75 x its CPU: "
                "MISSED"])

    def test_a_table_has_a_line_for_each_situation_and_our_column_first(self):
        results = [self.told("1: CPU", "Go", "x raw epoll", 3.0),
                   self.told("1: CPU", "janusrt", "x raw epoll", 1.25),
                   self.told("64: CPU", "Go", "x raw epoll", 4.0)]
        self.assertEqual(bench_targets.pivot(results, "http", 1, "CPU", "x raw epoll"), [
            "| http, 1 worker: CPU, x raw epoll | janusrt 1 | Go 1 |", "|---|---:|---:|",
            "| 1 | 1.25 | 3 |", "| 64 |  | 4 |"])

    def test_a_target_holds_for_one_worker_and_for_the_system_that_it_names(self):
        self.assertEqual(bench_targets.verdicts([
            self.told("hello, 64 connections: CPU", "janusrt", "x raw epoll", 2, workers=2),
            self.told("hello, 64 connections: CPU", "nginx", "x raw epoll", 2)]), [])


    def test_a_target_beside_a_peer_is_a_ratio_of_minima_with_the_same_number_of_workers(self):
        results = [{"work": "cast", "system": system, "version": "1", "workers": workers,
                    "metric": "a message, 1 to 1", "unit": "ns", "min": value,
                    "median": 9 * value, "runs": 5}
                   for system, workers, value in (("janusrt", 1, 20), ("Go", 1, 50),
                                                  ("janusrt", 2, 45), ("Go", 2, 50),
                                                  ("Erlang", 2, 1))]
        self.assertEqual(bench_targets.verdicts(results), [
            "target: a message, 1 to 1, 1 worker: 0.4 of at most 0.6 x Go: held",
            "target: a message, 1 to 1, 2 workers: 0.9 of at most 0.8 x Go: MISSED"])

    def test_a_target_beside_a_peer_that_is_not_here_is_not_judged(self):
        self.assertEqual(bench_targets.ratio_verdicts([
            {"work": "cast", "system": "janusrt", "version": "1", "workers": 1,
             "metric": "a message, 1 to 1", "unit": "ns", "min": 20, "median": 20, "runs": 5}]), [])

    def test_a_race_is_judged_beside_the_best_peer_by_the_minimum_and_by_the_median(self):
        results = [{"work": "million", "system": system, "version": "1", "workers": 1,
                    "metric": "a task, one batch of 1000000", "unit": "ns", "min": least,
                    "median": middle, "runs": 5}
                   for system, least, middle in (("janusrt", 20, 50), ("OpenMP clang", 40, 44),
                                                 ("oneTBB", 50, 40), ("OpenMP gcc", 1, 1))]
        self.assertEqual(bench_targets.verdicts(results), [
            "target: a task, one batch of 1000000, 1 worker, minimum: 0.5 of at most 1 "
            "x OpenMP clang: held",
            "target: a task, one batch of 1000000, 1 worker, median: 1.25 of at most 1 "
            "x oneTBB: MISSED"])

    def ours(self, work, metric, workers, least, middle):
        return {"work": work, "system": "janusrt", "version": "1", "workers": workers,
                "metric": metric, "unit": "ns", "min": least, "median": middle, "runs": 5}

    def test_a_limit_of_our_own_is_judged_for_each_number_of_workers(self):
        self.assertEqual(bench_targets.verdicts([
            self.ours("fib", "a spawn of fib", 2, 7, 9)]), [
                "target: a spawn of fib, janusrt, 2 workers, minimum: 7 of at most 8 ns: held",
                "target: a spawn of fib, janusrt, 2 workers, median: 9 of at most 8 ns: MISSED"])

    def test_a_speed_up_needs_both_numbers_of_workers(self):
        one = self.ours("fib", "a spawn of fib", 1, 20, 20)
        self.assertEqual(bench_targets.shape_verdicts([one]), [])
        self.assertEqual(
            bench_targets.shape_verdicts([one, self.ours("fib", "a spawn of fib", 2, 10, 16)]), [
                "target: a spawn of fib, 2 workers, minimum: 2 of at least 1.9 times as fast as "
                "1 worker: held",
                "target: a spawn of fib, 2 workers, median: 1.25 of at least 1.9 times as fast as "
                "1 worker: MISSED"])

    def test_growth_is_judged_over_all_workers_and_sizes(self):
        self.assertEqual(bench_targets.shape_verdicts([
            self.ours("growth", "a task, batches of 100", 1, 10, 10),
            self.ours("growth", "a task, batches of 100000", 64, 19, 30)]), [
                "target: growth, all workers and sizes, minimum: 1.9 of at most 2 x the cheapest: "
                "held",
                "target: growth, all workers and sizes, median: 3 of at most 2 x the cheapest: "
                "MISSED"])

    def test_every_target_is_of_a_work_that_exists(self):
        targets = (bench_targets.TARGETS + bench_targets.RATIOS + bench_targets.RACES +
                   bench_targets.LIMITS + bench_targets.SPEED_UPS + bench_targets.FLAT)
        self.assertLessEqual({target[0] for target in targets}, set(bench.WORKS))


class Failures(Race):
    def test_a_peer_that_fails_is_told_not_tried_again_and_no_failure(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.fake("b", "Other", 20, works="'spawn 1'", end="echo no room for it >&2; exit 3")
        code, text, _ = self.race()
        self.assertEqual(code, 0)
        self.assertIn("Other 1 does not survive: no room for it", text)
        self.assertEqual(self.order(), "abaaaa")

    def test_one_of_ours_that_fails_makes_the_run_fail(self):
        self.fake("a", "janusrt", 10, end="exit 3")
        self.fake("b", "Other", 20)
        code, text, _ = self.race()
        self.assertEqual(code, 1)
        self.assertIn("janusrt 1 does not survive: ended with 3", text)

    def test_a_peer_that_is_killed_is_told_with_the_signal(self):
        self.fake("a", "janusrt", 10)
        self.fake("b", "Other", 20, end="kill -SEGV $$")
        code, text, _ = self.race()
        self.assertEqual(code, 0)
        self.assertIn("does not survive: killed by SIGSEGV", text)

    def test_a_peer_that_talks_nonsense_or_nothing_is_told(self):
        self.fake("a", "janusrt", 10)
        self.fake("b", "Other", "x")
        silent = pathlib.Path(self.fake("c", "Third", 1))
        silent.write_text("#!/bin/sh\n[ $1 = works ] && echo spawn 0\n exit 0\n")
        code, text, results = self.race()
        self.assertEqual((code, {r["system"] for r in results}), (0, {"janusrt"}))
        self.assertIn("b does not survive: tells what is no measurement", text)
        self.assertIn("c does not survive: told nothing", text)

    def test_a_peer_that_cannot_start_is_left_out_and_one_of_ours_is_a_failure(self):
        self.fake("a", "janusrt", 10)
        self.listing["peers"].append(str(self.root / "gone"))
        code, text, _ = self.race()
        self.assertEqual(code, 0)
        self.assertIn("gone does not say what it knows", text)
        self.listing["ours"].append(str(self.root / "gone"))
        self.assertEqual(self.race()[0], 1)


class Names(Race):
    def test_a_name_that_does_not_exist_is_refused_before_anything_runs(self):
        self.fake("a", "janusrt", 10)
        code, text, results = self.race("spawn,spawm fob")
        self.assertEqual((code, results), (2, None))
        self.assertIn("no such work: spawm fob\n", text)
        self.assertIn("works:   switch ", text)
        self.assertFalse((self.root / "log").exists())

    def test_names_can_be_asked_for_alone(self):
        self.fake("a", "janusrt", 10)
        self.assertEqual(self.race("spawn,fib", flags=["--names"])[::2], (0, None))
        self.assertEqual(self.race("spawm", flags=["--names"])[::2], (2, None))

    def test_a_part_of_the_works_is_all_that_is_in_the_results(self):
        self.fake("a", "janusrt", 10, works="'spawn 1' 'fib 1' 'yield 1'")
        self.assertEqual({r["work"] for r in self.race("fib,yield")[2]}, {"fib", "yield"})
        self.assertEqual({r["work"] for r in self.race("spawn")[2]}, {"spawn"})

    def test_a_bench_runs_when_it_is_named_and_may_be_called_as_a_work_is(self):
        path = self.fake("a", "janusrt", 10, works="'million 0'")
        self.listing["benches"] = [path.replace("/a", "/million_bench")]
        os.link(path, self.listing["benches"][0])
        self.assertNotIn("million_bench:", self.race("million")[1])
        self.assertIn("million_bench:", self.race("million_bench")[1])

    def test_what_is_missing_is_named_in_a_line(self):
        self.fake("a", "janusrt", 10)
        self.listing["missing"] = ["Go (golang-go)"]
        self.assertIn("not here, left out: Go (golang-go)\n", self.race()[1])


class Before(Race):
    """Another version of this tree takes part."""

    def other(self, *values, name="z", works="'spawn 1'"):
        folder = self.root / "old" / "bench"
        folder.mkdir(parents=True)
        program = self.fake(name, "janusrt", *values, works=works)
        self.listing["ours"].remove(program)
        (folder / "programs.json").write_text(json.dumps({"ours": [program]}))
        return str(folder.parent)

    def test_its_programs_take_turns_and_are_no_rivals(self):
        before = self.other(8)
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.fake("b", "Other", 20, works="'spawn 1'")
        code, text, results = self.race(BEFORE=before)
        self.assertEqual((code, self.order()), (0, "azb" * 5))
        self.assertEqual({(r["system"], r["min"]) for r in results},
                         {("janusrt", 10), ("janusrt before", 8), ("Other", 20)})
        self.assertIn("1 of 1 won", text)

    def test_its_failure_is_told_and_is_none_of_ours(self):
        before = self.other("x")
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        code, text, _ = self.race(BEFORE=before)
        self.assertEqual(code, 0)
        self.assertIn("z does not survive: tells what is no measurement", text)

    def test_it_does_not_serve(self):
        before = self.other(8, works="'accept 1'")
        self.fake("a", "janusrt", 10, works="'accept 1'")
        self.race("accept", BEFORE=before)
        self.assertNotIn("z", self.order())

    def test_such_a_run_draws_nothing(self):
        before = self.other(8)
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.race(CHARTS="1", BEFORE=before)
        self.assertFalse(self.charts.exists())

    def test_a_folder_that_is_no_build_is_refused_before_anything_runs(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        code, text, results = self.race(BEFORE=str(self.root))
        self.assertEqual((code, results), (2, None))
        self.assertIn(f"BEFORE={self.root} is no build folder of this project", text)
        self.assertEqual(self.race(BEFORE=str(self.root), flags=["--names"])[0], 2)
        self.assertFalse((self.root / "log").exists())


class Tables(unittest.TestCase):
    """The tables for docs/PERFORMANCE.md."""

    def told(self, work, metric, system, workers, least, middle, unit="ns"):
        return {"work": work, "system": system, "version": "1", "workers": workers,
                "metric": metric, "unit": unit, "min": least, "median": middle, "runs": 5}

    def test_a_line_has_ours_the_others_and_the_verdict(self):
        metric = "a message, 4 to 4, room for 128"
        text = bench_table.tables([self.told("mpmc", metric, "janusrt", 2, 20, 29),
                                   self.told("mpmc", metric, "Go", 2, 30, 30),
                                   self.told("mpmc", metric, "unchecked", 2, 1, 1)])
        self.assertIn("| … 2 workers | 20 / 29 | Go 30 (1.5 x) | 0.9 x Go | "
                      "held by the minimum |", text)

    def test_a_speed_up_is_judged_by_the_line_of_one_worker(self):
        text = bench_table.tables([self.told("fib", "a spawn of fib", "janusrt", 1, 14, 14),
                                   self.told("fib", "a spawn of fib", "janusrt", 2, 7, 7.9)])
        self.assertIn("| 8 ns; 1.9 times as fast as 1 worker | held; held by the minimum |", text)

    def test_growth_has_a_line_for_each_system_and_number_of_workers(self):
        text = bench_table.tables([
            self.told("growth", "a task, batches of 100", "janusrt", 1, 10, 11),
            self.told("growth", "a task, batches of 1000000", "janusrt", 1, 12, 13),
            self.told("growth", "a task, batches of 100", "Go", 1, 100, 110)])
        self.assertIn("| 1 | janusrt | 10 |  |  |  | 12 |\n| 1 | Go | 100 |  |  |  |  |", text)

    def test_the_version_before_is_compared_metric_by_metric(self):
        text = bench_table.tables([
            self.told("live", "bytes a task", "janusrt 16 KiB", 1, 4400, 4400, "B"),
            self.told("live", "bytes a task", "janusrt before 16 KiB", 1, 4000, 4400, "B"),
            self.told("live", "bytes a task", "janusrt", 1, 1, 1, "B")])
        self.assertIn("| 1, bytes a task, janusrt 16 KiB | 4000 / 4400 | 4400 / 4400 | "
                      "1.10 / 1.00 | 4450 B | held |", text)
        self.assertNotIn("| 1, bytes a task | ", text)


class Unbuilt(Race):
    """A peer that is installed but does not build."""

    def setUp(self):
        super().setUp()
        (self.root / "bench").mkdir()
        (self.root / "build.ninja").write_text("".join(
            f"rule {name}\n  command = {action}\nbuild {name}: {name}\n" for name, action in (
                ("good", "touch good"), ("bad", "cat said; exit 1"))))
        (self.root / "said").write_text("building\npeer.c: error: no such header\n1 error\n")
        (self.root / "CMakeCache.txt").write_text(
            f"CMAKE_CACHEFILE_DIR:INTERNAL={self.root}\nCMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n"
            "CMAKE_GENERATOR:INTERNAL=Ninja\nCMAKE_PROJECT_NAME:STATIC=peers\n"
            f"CMAKE_MAKE_PROGRAM:FILEPATH={shutil.which('ninja')}\n")

    def build(self, *targets):
        files = [str(self.root / target) for target in targets]
        (self.root / "bench" / "programs.json").write_text(
            json.dumps(self.listing | {"targets": targets, "peers": files}))
        bench_peers.main(self.root)
        return json.loads((self.root / "bench" / "unbuilt.json").read_text())

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "no cmake or ninja here")
    def test_a_peer_that_does_not_build_is_named_and_what_is_left_of_it_is_removed(self):
        (self.root / "bad").write_text("of an earlier build")
        self.assertEqual(self.build("good", "bad"),
                         {str(self.root / "bad"): "peer.c: error: no such header"})
        self.assertFalse((self.root / "bad").exists())
        self.assertTrue((self.root / "good").exists())

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "no cmake or ninja here")
    def test_if_all_peers_build_none_is_named(self):
        self.assertEqual(self.build("good"), {})

    def test_the_race_goes_on_without_it_and_says_so_in_a_line(self):
        self.fake("a", "janusrt", 10)
        peer = self.fake("b", "Other", 20)
        (self.root / "unbuilt.json").write_text(json.dumps({peer: "no such header"}))
        code, text, results = self.race()
        self.assertEqual((code, {r["system"] for r in results}), (0, {"janusrt"}))
        self.assertIn("does not build, left out: b: no such header\n", text)


class Progress(Race):
    def test_elsewhere_than_on_a_terminal_each_work_is_announced_in_a_line(self):
        self.fake("a", "janusrt", 10)
        text = self.race()[1]
        self.assertIn("[1/10] spawn, 1 worker …\n", text)
        self.assertIn("[6/10] spawn, 2 workers …\n", text)
        self.assertNotIn("\033", text)

    def test_on_a_terminal_one_line_tells_what_runs(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        master, slave = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-B", str(TOP / "tools" / "bench.py"), *self.arguments()],
            env=os.environ | {"ONLY": "spawn", "QUICK": "1", "CHARTS": ""}, stdout=slave,
            check=False)
        os.close(slave)
        text = os.read(master, 65536)
        os.close(master)
        self.assertEqual(done.returncode, 0)
        self.assertIn("\r\033[K[5/5] spawn, 1 worker: janusrt 1 … round 5 of 5", text.decode())


class Charts(Race):
    def names(self):
        return {path.name for path in self.charts.glob("*")} if self.charts.exists() else set()

    def test_only_a_full_run_draws_unless_it_is_asked_for(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.race()
        self.race("", QUICK="1")
        self.race(QUICK="")
        self.assertEqual(self.names(), set())
        self.race("", QUICK="")
        self.assertIn("results.md", self.names())

    def test_a_failed_full_run_draws_nothing(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'", end="exit 1")
        self.race("", QUICK="")
        self.assertEqual(self.names(), set())

    def test_the_folder_holds_one_run(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        self.charts.mkdir()
        (self.charts / "fib.svg").write_text("old")
        self.race(CHARTS="1")
        self.assertNotIn("fib.svg", self.names())
        self.assertEqual(json.loads((self.charts / "results.json").read_text()),
                         json.loads(self.out.read_text()))
        self.assertIn("| m | 1 | **janusrt 1** | 10.00 ns | 10.00 | 5 | 1.00 |",
                      (self.charts / "results.md").read_text())

    def test_without_gnuplot_there_is_one_line_and_the_table(self):
        self.fake("a", "janusrt", 10, works="'spawn 1'")
        (self.root / "bin").mkdir()
        for tool in ("sh", "grep"):
            os.symlink(shutil.which(tool), self.root / "bin" / tool)
        code, text, _ = self.race(CHARTS="1", PATH=str(self.root / "bin"))
        self.assertEqual(code, 0)
        self.assertEqual([line for line in text.splitlines() if "gnuplot" in line],
                         ["no charts: gnuplot is not here (package gnuplot-nox)"])
        self.assertEqual(self.names(), {"results.md", "results.json"})

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not here")
    def test_every_kind_of_chart_is_drawn(self):
        results = []
        for system, value in (("janusrt", 10), ("Other", 300)):
            for work, metric in (("spawn", "m"), ("wake", "w, p50"), ("wake", "w, p99"),
                                 ("growth", "a task, batches of 100"),
                                 ("growth", "a task, batches of 1000")):
                for workers in (1, 2):
                    results.append(dict(zip(FIELDS, (work, system, "1", workers, metric, "ns",
                                                     value, value, 5))))
        path = self.root / "results.json"
        path.write_text(json.dumps(results))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertTrue(bench_charts.draw(path, self.charts))
        self.assertEqual(self.names(), {
            "spawn.svg", "wake_steal.svg", "growth_systems.svg", "growth_workers.svg",
            "results.md", "results.json"})
        for chart in self.charts.glob("*.svg"):
            self.assertIn("</svg>", chart.read_text())
        text = (self.charts / "spawn.svg").read_text()
        self.assertIn("janusrt 1, Other 1", text)
        self.assertIn("(logarithmic)", text)
        self.assertIn("core", text)


if __name__ == "__main__":
    unittest.main()
