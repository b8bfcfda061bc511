# SPDX-License-Identifier: MIT
"""The targets of the works with servers of HTTP, and whether a run holds them."""

from bench_results import OURS, judged

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
