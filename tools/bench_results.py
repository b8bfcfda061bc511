# SPDX-License-Identifier: MIT
"""What bench.py and bench_charts.py both have to know about a result."""

import pathlib

OURS = "janusrt"
BEFORE = f"{OURS} before"  # another version of this tree, in the same run
UNCHECKED = "unchecked"  # our library, or a loop, without checks and budgets
# What the kernel takes: to be reached, not to be beaten.
FLOORS = ("pthread condvar", "raw epoll")
PAIRED = "x raw epoll"  # the unit of most ratios that were measured in pairs
# Works whose metrics are "situation: measure".
TOGETHER = ("echo", "accept", "idle", "http", "http_idle", "http_load", "http_fair",
            "https")


def named(result):
    return f"{result['system']} {result['version']}".strip()


def crew(workers):
    return f"{workers} worker{'s' if workers != 1 else ''}"


def is_variant(system):
    """Ours too, in another setting: "janusrt 16 KiB"."""
    return system == UNCHECKED or system.startswith(OURS + " ")


def is_rival(system):
    return system != OURS and not is_variant(system) and system not in FLOORS


def rivals_of(ours, results):
    """Those that others have in the same metric of the same work."""
    return [r for r in results if is_rival(r["system"])
            and all(r[k] == ours[k] for k in ("work", "workers", "metric", "unit"))]


def is_ratio(result):
    """Of two programs that took turns; the unit is "x raw epoll" or the like."""
    return result["unit"].startswith("x ")


def judged(result):
    """The number a result is judged by: of ratios of pairs the median, of all else the minimum."""
    return result["median" if is_ratio(result) else "min"]


def number_text(value):
    """Three digits, or all that stand before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def shown(path):
    """As one would name it in this tree."""
    top = pathlib.Path(__file__).resolve().parent.parent
    return path.relative_to(top) if path.is_relative_to(top) else path
