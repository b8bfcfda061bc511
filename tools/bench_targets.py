# SPDX-License-Identifier: MIT
"""The targets of the works with servers of HTTP, with actors and with `janusrt cc`, and whether a
run holds them.

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
    return lines + ratio_verdicts(results)


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
    print("\n".join(verdicts(results)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_targets.py RESULTS.json")
    main(sys.argv[1])
