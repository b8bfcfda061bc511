# SPDX-License-Identifier: MIT
"""The targets of the race, and whether a run holds them.

    bench_targets.py RESULTS.json

prints the medians of the works with servers as tables for docs/PERFORMANCE.md, and below them the
verdicts of all works.
"""

import json
import pathlib
import sys

from bench_results import OURS, TOGETHER, crew, judged, named, number_text

# A target: the work, the metric, the system that it is measured of, the most that we allow.
# "ours" is the CPU time of our server against that of the system in whose row it stands.
TARGETS = (
    ("http", "hello, 1 connection: CPU", OURS, 1.10),
    ("http", "hello, 64 connections: CPU", OURS, 1.10),
    ("http", "hello, 512 connections: CPU", OURS, 1.12),
    *(("http", f"hello, {count} connections: ours", system, most)
      for count in (64, 512)
      for system, most in (("nginx", 0.75), ("hyper", 0.70), ("libh2o", 0.70), ("h2o file", 0.70),
                           ("Go net/http", 0.27))),
    ("http_fair", "busy: p99", OURS, 2),
    ("http_idle", "10000 idle connections: memory of each", OURS, 5120),
    *(("actors", f"an idle actor{which}", system, most)
      for which in ("", " that has answered")
      for system, most in ((OURS, 512), (f"{OURS} own budget", 768))),
    *(("cc", f"{metric}: {kind}", OURS, most)
      for metric, most in (("kernels, clang 19", 1.06), ("kernels, clang 14", 1.075),
                           ("kernels without fib, clang 19", 1.04), ("five programs", 1.10),
                           ("vector sums in a task", 1.035))
      for kind in ("minima", "medians")),
    ("cc", "SQLite, text", OURS, 1.55),
    ("cc", "SQLite, time to compile", OURS, 1.5),
)

# A target beside a peer: the work, the metric, the peer, and by the number of workers the largest
# multiple of the peer's value that ours may be. The two take turns in one run.
RATIOS = (
    ("cast", "a message, 1 to 1", "Go", {1: 0.6, 2: 0.8}),
    ("cast", "a message, 1 to 1", "Erlang", {1: 0.3}),
    ("cast", "a message, 4 to 1", "Go", {1: 0.6, 2: 1.0}),
    ("call", "a call without a deadline", "Go", {1: 0.4, 2: 0.7}),
    ("call", "a call without a deadline", "Erlang/OTP", {1: 0.2}),
    ("call", "a call with a deadline of 5 s", "Go", {1: 0.3, 2: 0.4}),
    ("call", "a call with a deadline of 5 s", "Erlang/OTP", {1: 0.2}),
    ("ring", "a hop, 1000 actors", "Go", {1: 0.6, 2: 0.6}),
    ("actors", "start, stop and await an actor", "Go", {1: 0.5, 2: 0.6}),
    ("actors", "start, stop and await an actor", "Erlang/OTP", {1: 0.07}),
    ("actors", "an actor's end until DOWN, p50", "Erlang/OTP", {1: 0.2}),
    *(("actors", f"an idle actor{which}", system, {1: most})
      for which in ("", " that has answered")
      for system, most in (("CAF", 0.5), ("Erlang/OTP", 0.2))),
    ("actors", "a message to each idle actor, all answer", "Erlang/OTP", {1: 0.5, 2: 0.7}),
    ("actors", "stop of a supervisor with 10000 children, in order", "Erlang/OTP", {1: 0.1}),
    ("actors", "stop of a supervisor with 10000 children, together", "Erlang/OTP", {1: 0.1}),
    ("restart", "from the crash to an answer, p50", "Go", {1: 1.2, 2: 1.2}),
    ("restart", "from the crash to an answer, p50", "Erlang/OTP", {1: 0.05, 2: 0.05}),
)

# A target of the core beside peers: the work, the metric, which of our systems, the peers, and by
# the number of workers the largest multiple of the best peer's value that ours may be. The minimum
# and the median are judged each.
RACES = (
    ("switch", "a raw switch between two stacks", OURS, ("Boost.Context", "Boost.Context fiber"),
     {1: 1.0}),
    ("spawn", "a task, batches of 1000", OURS, ("OpenMP gcc",), {1: 1.0}),
    ("million", "a task, first batch of 1000000", OURS, ("OpenMP clang", "oneTBB"),
     {1: 1.2, 2: 1.2}),
    ("million", "a task, one batch of 1000000", OURS, ("OpenMP clang", "oneTBB"),
     {1: 1.0, 2: 1.0}),
    ("pingpong", "a round trip", OURS, ("Go",), {1: 0.2, 2: 0.2}),
    ("pingpong", "a round trip", OURS, ("State Threads",), {1: 1.2}),
    ("mpmc", "a message, 4 to 4, room for 128", OURS, ("Go",), {2: 0.9}),
    ("wake", "a sleeping worker wakes, p50", OURS, ("pthread condvar",), {2: 1.2}),
    ("steal", "a thief takes a task, p50", OURS, ("OpenMP gcc",), {2: 1.2}),
    ("steal", "a thief takes a task, p99", OURS, ("OpenMP gcc",), {2: 1.2}),
    ("timers", "100000 tasks sleep a millisecond or two, a sleep", OURS, ("Go",), {1: 1.0, 2: 1.0}),
    ("live", "create and block", f"{OURS} 16 KiB", ("Go",), {1: 1.0, 2: 1.0}),
    ("live", "wake and end", OURS, ("Go",), {1: 1.0, 2: 1.0}),
    ("crowd", "a task, told CLOSED and ended", OURS, ("Go",), {1: 1.0, 2: 1.0}),
    ("growth", "a task, batches of 100000", OURS, ("oneTBB",), {4: 1.2, 8: 1.2}),
)

# The most that a value of ours may be: the work, the metric, which of our systems, the unit, and
# the limits by the number of workers.
LIMITS = (
    ("fib", "a spawn of fib", OURS, "ns", {1: 15, 2: 8}),
    ("both", "a fork of fib", OURS, "ns", {1: 6, 2: 3}),
    ("checks", "a capability check", OURS, "ns", {1: 2}),
    ("live", "bytes a task", f"{OURS} 16 KiB", "B", {1: 4450}),
    ("live", "bytes a task", OURS, "B", {1: 4950}),
    ("live", "bytes a task", f"{OURS} resting", "B", {1: 600}),
)

# How many times as fast two workers must be as one.
SPEED_UPS = (
    ("fib", "a spawn of fib", 1.9),
    ("both", "a fork of fib", 1.9),
)

# Where the cost of an operation may differ by this factor over all numbers of workers and sizes.
FLAT = (("growth", 2.0),)

MEASURES = (("min", "minimum"), ("median", "median"))


def verdict(what, value, most, unit):
    said = "held" if value <= most else "MISSED"
    return f"target: {what}: {value:.4g} of at most {most:g} {unit}: {said}"


def verdicts(results):
    """A line for each target that these results can judge."""
    lines = []
    for work, metric, system, most in TARGETS:
        for result in results:
            if (result["work"], result["metric"], result["system"]) != (work, metric, system):
                continue
            if result["workers"] != 1:
                continue
            of = "" if system == OURS else f", {system}"
            lines.append(verdict(f"{metric}{of}", judged(result), most, result["unit"]))
    return lines + ratio_verdicts(results) + race_verdicts(results)


def values_by(measure, results):
    return {(r["work"], r["metric"], r["system"], r["workers"]): r[measure] for r in results}


def race_verdicts(results):
    """The verdicts of RACES and LIMITS."""
    lines = []
    for measure, named_as in MEASURES:
        values = values_by(measure, results)
        for work, metric, system, peers, limits in RACES:
            for workers, most in limits.items():
                ours = values.get((work, metric, system, workers))
                theirs = [(values[key], peer) for peer in peers
                          if values.get(key := (work, metric, peer, workers))]
                if ours is not None and theirs:
                    best, peer = min(theirs)
                    lines.append(verdict(f"{metric}, {crew(workers)}, {named_as}", ours / best,
                                         most, f"x {peer}"))
        for work, metric, system, unit, limits in LIMITS:
            for workers, most in limits.items():
                if (value := values.get((work, metric, system, workers))) is not None:
                    lines.append(verdict(f"{metric}, {system}, {crew(workers)}, {named_as}", value,
                                         most, unit))
    return lines


def shape_verdicts(results):
    """The verdicts of SPEED_UPS and FLAT, which need the results of all numbers of workers."""
    lines = []
    for measure, named_as in MEASURES:
        values = values_by(measure, results)
        for work, metric, least in SPEED_UPS:
            one, two = (values.get((work, metric, OURS, workers)) for workers in (1, 2))
            if one and two:
                said = "held" if one / two >= least else "MISSED"
                lines.append(f"target: {metric}, 2 workers, {named_as}: {one / two:.3g} of at "
                             f"least {least:g} times as fast as 1 worker: {said}")
        for work, most in FLAT:
            costs = [v for (w, _, system, _), v in values.items() if (w, system) == (work, OURS)]
            if len(costs) > 1 and min(costs) > 0:
                lines.append(verdict(f"{work}, all workers and sizes, {named_as}",
                                     max(costs) / min(costs), most, "x the cheapest"))
    return lines


def ratio_verdicts(results):
    values = {(r["work"], r["metric"], r["system"], r["workers"]): judged(r) for r in results}
    lines = []
    for work, metric, system, limits in RATIOS:
        for workers, most in limits.items():
            ours = values.get((work, metric, OURS, workers))
            theirs = values.get((work, metric, system, workers))
            if ours is not None and theirs:
                lines.append(verdict(f"{metric}, {crew(workers)}", ours / theirs, most,
                                     f"x {system}"))
    return lines


def pivot(results, work, workers, measure, unit):
    """A table of medians in Markdown: a line for each situation, a column for each system."""
    cells, systems = {}, {}
    for r in results:
        situation, _, told = r["metric"].rpartition(": ")
        if (r["work"], r["workers"], told, r["unit"]) != (work, workers, measure, unit):
            continue
        cells.setdefault(situation, {})[named(r)] = number_text(r["median"])
        systems.setdefault(named(r), r["system"])
    columns = sorted(systems, key=lambda name: (systems[name] != OURS, name))
    lines = [f"| {work}, {crew(workers)}: {measure}, {unit} | {' | '.join(columns)} |",
             f"|---{'|---:' * len(columns)}|"]
    return lines + [f"| {situation} | {' | '.join(row.get(c, '') for c in columns)} |"
                    for situation, row in cells.items()]


def main(path):
    results = json.loads(pathlib.Path(path).read_text())
    wanted = dict.fromkeys((r["work"], r["workers"], r["metric"].rpartition(": ")[2], r["unit"])
                           for r in results if r["work"] in TOGETHER)
    for key in wanted:
        print("\n".join(pivot(results, *key)), end="\n\n")
    print("\n".join(verdicts(results) + shape_verdicts(results)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_targets.py RESULTS.json")
    main(sys.argv[1])
