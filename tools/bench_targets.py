# SPDX-License-Identifier: MIT
"""The targets of the works with servers of HTTP, and whether a run holds them.

    bench_targets.py RESULTS.json

prints the medians of a run as tables for docs/PERFORMANCE.md, and below them the verdicts.
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
)


def verdicts(results):
    """A line for each target that these results of one work can judge."""
    lines = []
    for work, metric, system, most in TARGETS:
        for result in results:
            if (result["work"], result["metric"], result["system"]) != (work, metric, system):
                continue
            if result["workers"] != 1:
                continue
            value = judged(result)
            of = "" if system == OURS else f", {system}"
            verdict = "held" if value <= most else "MISSED"
            lines.append(f"target: {metric}{of}: {value:.4g} of at most {most:g} "
                         f"{result['unit']}: {verdict}")
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
    results = [r for r in json.loads(pathlib.Path(path).read_text()) if r["work"] in TOGETHER]
    wanted = dict.fromkeys((r["work"], r["workers"], r["metric"].rpartition(": ")[2], r["unit"])
                           for r in results)
    for key in wanted:
        print("\n".join(pivot(results, *key)), end="\n\n")
    print("\n".join(verdicts(results)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_targets.py RESULTS.json")
    main(sys.argv[1])
