# SPDX-License-Identifier: MIT
"""The tables of the core in docs/PERFORMANCE.md, from a run of `make bench`.

    bench_table.py RESULTS.json

The first has a line for each metric of our systems, with the fastest others and the target. The
second shows growth. After a run with BEFORE=FOLDER a third compares with the version before.
"""

import json
import pathlib
import sys

from bench_results import BEFORE, OURS, is_rival, number_text
from bench_targets import LIMITS, RACES, SPEED_UPS

OTHERS = 4  # shown in a line
SMALL, STACKLESS = f"{OURS} 16 KiB", f"{OURS} resting"

# The words for a line, the work, the metric, our system, the numbers of workers.
LINES = (
    ("raw switch, control words kept", "switch", "a raw switch between two stacks", OURS, (1,)),
    ("yield between two tasks", "yield", "a yield", OURS, (1, 2)),
    ("start and await, batches of 1000", "spawn", "a task, batches of 1000", OURS, (1, 2)),
    ("first batch of 1,000,000", "million", "a task, first batch of 1000000", OURS, (1, 2)),
    ("a later batch of 1,000,000", "million", "a task, one batch of 1000000", OURS, (1, 2)),
    ("fork and join by nursery, fib, a spawn", "fib", "a spawn of fib", OURS, (1, 2)),
    ("fork and join by `janus_both`, fib", "both", "a fork of fib", OURS, (1, 2)),
    ("skynet, a million leaves", "skynet", "1000000 leaves", OURS, (1, 2)),
    ("unbuffered ping-pong, a round trip", "pingpong", "a round trip", OURS, (1, 2)),
    ("buffered 1:1, room for 128, a message", "buffered", "a message, 1 to 1, room for 128",
     OURS, (1, 2)),
    ("MPMC 4:4, a message", "mpmc", "a message, 4 to 4, room for 128", OURS, (1, 2)),
    ("select over 8, a message", "select", "a message, select over 8", OURS, (1, 2)),
    ("a million started and blocked, 256 KiB stacks", "live", "create and block", OURS, (1, 2)),
    ("… 16 KiB stacks", "live", "create and block", SMALL, (1, 2)),
    ("… resting", "live", "create and block", STACKLESS, (1, 2)),
    ("bytes of each, page tables included, 256 KiB stacks", "live", "bytes a task", OURS, (1,)),
    ("… 16 KiB stacks", "live", "bytes a task", SMALL, (1,)),
    ("… resting", "live", "bytes a task", STACKLESS, (1,)),
    ("a million woken and ended, 256 KiB stacks", "live", "wake and end", OURS, (1, 2)),
    ("… 16 KiB stacks", "live", "wake and end", SMALL, (1, 2)),
    ("… resting", "live", "wake and end", STACKLESS, (1, 2)),
    ("a million in one channel, closed, until ended", "crowd", "a task, told CLOSED and ended",
     OURS, (1, 2)),
    ("a sleeping worker wakes, p50", "wake", "a sleeping worker wakes, p50", OURS, (2,)),
    ("… p99", "wake", "a sleeping worker wakes, p99", OURS, (2,)),
    ("a thief takes a task, p50", "steal", "a thief takes a task, p50", OURS, (2,)),
    ("… p99", "steal", "a thief takes a task, p99", OURS, (2,)),
    ("a deadline armed and disarmed, 100,000 others wait", "timers",
     "arm and disarm, 100000 others wait", OURS, (1, 2)),
    ("100,000 tasks sleep a millisecond or two, a sleep", "timers",
     "100000 tasks sleep a millisecond or two, a sleep", OURS, (1, 2)),
    ("a neighbour's unit of work alone, p99", "neighbours", "a unit of work alone, p99", OURS,
     (1,)),
    *((f"… beside {hogs}", "neighbours", f"a unit of work beside {hogs}, p99", OURS, (1,))
      for hogs in ("CPU hogs", "spawn bombs", "allocation bombs")),
    ("a capability check", "checks", "a capability check", OURS, (1,)),
)


def target(values, work, metric, system, workers):
    """The target of a line in words, and whether minimum and median hold it."""
    limits, words = [], []
    for a, b, c, peers, most in RACES:
        if (a, b, c) != (work, metric, system) or workers not in most:
            continue
        theirs = [values[key] for peer in peers if (key := (work, metric, peer, workers)) in values]
        if theirs:
            limits.append([min(t[i] for t in theirs) * most[workers] for i in (0, 1)])
            words.append(f"{most[workers]:g} x {' or '.join(peers)}")
    for a, b, c, unit, most in LIMITS:
        if (a, b, c) == (work, metric, system) and workers in most:
            limits.append([most[workers]] * 2)
            words.append(f"{most[workers]:g} {unit}")
    ours = values[work, metric, system, workers]
    for a, b, least in SPEED_UPS:
        if (a, b, OURS, 2) == (work, metric, system, workers):
            one = values[work, metric, system, 1]
            limits.append([o / least for o in one])
            words.append(f"{least:g} times as fast as 1 worker")
    held = [[o <= most for o, most in zip(ours, limit)] for limit in limits]
    return "; ".join(words), "; ".join(map(said, held))


def said(held):
    if all(held):
        return "held"
    return "held by the minimum" if held[0] else "held by the median" if held[1] else "**missed**"


def others(values, work, metric, system, workers):
    ours = values[work, metric, system, workers][0]
    rivals = sorted((v[0], s) for (w, m, s, n), v in values.items()
                    if (w, m, n) == (work, metric, workers) and is_rival(s))
    return ", ".join(f"{s} {number_text(v)} ({v / ours:.1f} x)" for v, s in rivals[:OTHERS])


def race_table(values, units):
    lines = ["| ns unless said otherwise | ours, min / median | others, min (x ours) | target | |",
             "|---|---:|---|---|---|"]
    for words, work, metric, system, crews in LINES:
        for workers in crews:
            if (key := (work, metric, system, workers)) not in values:
                continue
            unit = units[work, metric]
            name = words if workers == crews[0] else "… 2 workers"
            name += f", {unit}" if unit not in ("ns", "B") else ""
            lines.append(f"| {name} | {pair(values[key])} | {others(values, *key)} | "
                         f"{' | '.join(target(values, *key))} |")
    return lines


def pair(value):
    return " / ".join(map(number_text, value))


def growth_table(values):
    sizes = ("100", "1000", "10000", "100000", "1000000")
    lines = ["| workers | system | 10² | 10³ | 10⁴ | 10⁵ | 10⁶ |",
             "|---:|---|---:|---:|---:|---:|---:|"]
    rows = sorted({(workers, system != OURS, system) for work, _, system, workers in values
                   if work == "growth" and (system == OURS or is_rival(system))})
    for workers, _, system in rows:
        cells = (values.get(("growth", f"a task, batches of {size}", system, workers))
                 for size in sizes)
        shown = " | ".join(number_text(cell[0]) if cell else "" for cell in cells)
        lines.append(f"| {workers} | {system} | {shown} |")
    return lines


def before_table(values):
    """A line for each metric that the version before has, too."""
    lines = ["| workers, what | before, min / median | after | ratio | target | |",
             "|---|---:|---:|---:|---|---|"]
    for key, after in values.items():
        work, metric, system, workers = key
        before = values.get((work, metric, BEFORE + system.removeprefix(OURS), workers))
        if before is None or not system.startswith(OURS) or system.startswith(BEFORE):
            continue
        if min(before) <= 0:
            continue
        name = f"{workers}, {metric}" + (f", {system}" if system != OURS else "")
        ratio = " / ".join(f"{a / b:.2f}" for a, b in zip(after, before))
        lines.append(f"| {name} | {pair(before)} | {pair(after)} | {ratio} | "
                     f"{' | '.join(target(values, *key))} |")
    return lines


def tables(results):
    values = {(r["work"], r["metric"], r["system"], r["workers"]): (r["min"], r["median"])
              for r in results}
    units = {(r["work"], r["metric"]): r["unit"] for r in results}
    parts = [race_table(values, units), growth_table(values), before_table(values)]
    return "\n\n".join("\n".join(part) for part in parts if len(part) > 2)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_table.py RESULTS.json")
    print(tables(json.loads(pathlib.Path(sys.argv[1]).read_text())))
