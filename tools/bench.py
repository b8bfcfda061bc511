#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benches. Usage: tools/bench.py PROGRAMS.json RESULTS.json

`make bench` calls it. The environment says what to run: ONLY=spawn,fib names works, or benches by
their files (ONLY=switch_bench); QUICK=1 makes everything small. The works of runner.h are a race:
all programs that know a work take turns, A B C A B C, so that a slow moment of the machine hits all
of them. Of each the minimum and the median are told, and the ratio of minima to ours; smaller is
better. A peer that takes very long does not run in every round. The other benches run once each and
tell what they find by themselves.

RESULTS.json becomes a list of {"work", "system", "version", "workers", "metric", "unit", "min",
"median", "runs"}; ours has the system "janusrt".
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

OURS = "janusrt"
ROUNDS = 5
TIMEOUT_S = 300

# The works in the order they run, and the numbers of workers they run with.
WORKS = {
    "spawn": (1, 2),
    "million": (1, 2),
    "fib": (1, 2),
    "yield": (1, 2),
    "skynet": (1, 2),
    "pingpong": (1, 2),
    "buffered": (1, 2),
    "mpmc": (1, 2),
    "select": (1, 2),
    "latency": (2,),
    "live": (1, 2),
    "crowd": (1, 2),
    "growth": (1, 2, 4, 8),
}
SELDOM = ("growth",)  # only when named
ONE_ROUND = ("live", "crowd")  # long, and their numbers hardly move


class Program:
    """Something that takes part, and how many workers it allows in each work (0: any number)."""

    def __init__(self, path):
        self.path = path
        told = subprocess.run([path, "works"], check=True, capture_output=True, text=True).stdout
        self.works = {line.split()[0]: int(line.split()[1]) for line in told.splitlines()}

    def knows(self, work, workers):
        most = self.works.get(work)
        return most is not None and (most == 0 or workers <= most)

    def run(self, work, workers, size):
        """(measurements, what went wrong or None)"""
        command = [self.path, "run", work, str(workers), size]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S,
                                  check=False)
        except subprocess.TimeoutExpired:
            return [], f"took more than {TIMEOUT_S} s"
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for one in found:
            one["version"] = one["version"].strip()
        if done.returncode != 0:
            return found, done.stderr.strip() or f"ended with {done.returncode}"
        return found, None


def race(programs, work, workers, rounds, size):
    """Lets all programs that know the work take turns: ([result], [complaint])."""
    patience = 2 if size == "quick" else 10  # seconds; a peer that takes longer runs once
    values, order, complaints, out = {}, [], [], set()
    for _ in range(rounds):
        for program in programs:
            if program.path in out or not program.knows(work, workers):
                continue
            started = time.monotonic()
            found, wrong = program.run(work, workers, size)
            slow = time.monotonic() - started > patience
            if wrong or (slow and all(one["system"] != OURS for one in found)):
                out.add(program.path)
            if wrong:
                complaints.append(f"{pathlib.Path(program.path).name}: {wrong}")
            for one in found:
                key = tuple(one[k] for k in ("work", "system", "version", "workers", "metric",
                                             "unit"))
                if key not in values:
                    order.append(key)
                values.setdefault(key, []).append(one["value"])
    results = []
    for key in order:
        result = dict(zip(("work", "system", "version", "workers", "metric", "unit"), key))
        result["min"] = min(values[key])
        result["median"] = statistics.median(values[key])
        result["runs"] = len(values[key])
        results.append(result)
    return results, complaints


def show(work, workers, results, complaints):
    """A table for each metric where systems are rivals; else one for all metrics."""
    crew = f"{workers} worker{'s' if workers != 1 else ''}"
    rivals = len({r["system"] for r in results}) > 1
    if not rivals:
        print(f"\n{work}, {crew}")
    width = 22 if rivals else max([len(r["metric"]) for r in results] + [22])
    for metric in dict.fromkeys(r["metric"] for r in results):
        lines = sorted((r for r in results if r["metric"] == metric), key=lambda r: r["min"])
        ours = next((r["min"] for r in lines if r["system"] == OURS), None)
        if rivals:
            print(f"\n{work}, {crew}: {metric}")
        for r in lines:
            name = f"{r['system']} {r['version']}" if rivals else metric
            ratio = f"{r['min'] / ours:8.2f} x" if rivals and ours else ""
            print(f"  {name:{width}}  min {r['min']:10.2f}  median {r['median']:10.2f} "
                  f"{r['unit']:2}  {r['runs']:3} runs {ratio}")
    for complaint in complaints:
        print(f"  {complaint}")
    sys.stdout.flush()


def main(arguments):
    listed = json.loads(pathlib.Path(arguments[0]).read_text())
    quick = os.environ.get("QUICK", "") not in ("", "0")
    only = [w for w in os.environ.get("ONLY", "").replace(",", " ").split() if w]
    benches = {pathlib.Path(p).name: p for p in listed["benches"]}
    unknown = [w for w in only if w not in WORKS and w not in benches]
    if unknown:
        print(f"no such work: {' '.join(unknown)}; there are {' '.join([*WORKS, *benches])}")
        return 2
    for name in listed["missing"]:
        print(f"not here, left out: {name}")
    programs = [Program(path) for path in listed["runners"]]

    all_results, failed = [], False
    for work, counts in WORKS.items():
        if work not in only and (only or work in SELDOM):
            continue
        for workers in counts:
            rounds = 1 if work in ONE_ROUND else ROUNDS
            results, complaints = race(programs, work, workers, rounds,
                                       "quick" if quick else "full")
            show(work, workers, results, complaints)
            all_results += results
            failed = failed or bool(complaints)
    out = pathlib.Path(arguments[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(all_results, indent=1) + "\n")
    here = pathlib.Path(__file__).resolve().parent.parent
    shown = out.relative_to(here) if out.is_relative_to(here) else out
    print(f"\n{len(all_results)} results are in {shown}")

    for name, path in benches.items():
        if name in only or (not only and not quick):
            print(f"\n{name}:", flush=True)
            failed = subprocess.run([path], check=False).returncode != 0 or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
