#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what tools/bench.py has measured. Usage: tools/bench_charts.py RESULTS.json FOLDER

`make bench` calls it after a full run, or with CHARTS=1. FOLDER then holds that run alone:

- WORK.svg with a bar for each system, wake_steal.svg, growth_systems.svg, growth_workers.svg
- results.md with every number, and results.json, a copy

gnuplot draws the charts. Without gnuplot one line says so, and only numbers are written. A chart
has its own background, so that it can be read on light and dark pages.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import textwrap

from bench_results import (FLOORS, OURS, PAIRED, TOGETHER, crew, is_variant, judged, named,
                           number_text, shown)

WIDTH = 860
LEFT = 190  # where bars begin
RIGHT = 180  # behind the longest, for its number
ROW = 24  # the height of a bar, with its gap
PANEL_HEAD = 42  # above the bars: a title; below them nothing, for each bar has its number
LOG_FROM = 20  # the ratio of the longest bar to the shortest that a plain scale can still show

PAPER, INK, FAINT = "#fcfcfa", "#24292f", "#6e7781"
COLOURS = {"ours": "#0b6bcb", "variant": "#8cbdec", "rival": "#b4bac1", "floor": "#d7dce0"}
LINES = ("#d1495b", "#2e933c", "#8e5ea2", "#d98200", "#5f6b76", "#00798c", "#a0522d")


def kind(system):
    if system == OURS:
        return "ours"
    if is_variant(system):
        return "variant"
    return "floor" if system in FLOORS else "rival"


# Where and when.


def first_match(path, pattern, default):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    except OSError:
        return default
    return found.group(1).strip() if found else default


def machine():
    cpu = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", platform.machine())
    ram = int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+) kB", "0")) / 1024 / 1024
    cores = len(os.sched_getaffinity(0))
    return (f"{cpu}, {cores} core{'s' if cores != 1 else ''}, {ram:.1f} GiB, "
            f"{platform.system()} {platform.release()}")


def measured_on(path):
    return datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()


def versions(results):
    return ", ".join(sorted({named(r) for r in results}, key=lambda n: (n.split()[0] != OURS, n)))


# gnuplot.


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Chart:
    """A page for gnuplot: panels below each other, and a footer."""

    def __init__(self, title, heights, results, where):
        foot = [line for part in (where, versions(results)) for line in textwrap.wrap(part, 125)]
        self.height = 44 + sum(heights) + 16 + 15 * len(foot)
        self.heights, self.at = heights, 44
        self.lines = [
            f"set terminal svg size {WIDTH},{self.height} font 'Helvetica,Arial,sans-serif,12' "
            f"background '{PAPER}' noenhanced",
            "set encoding utf8",
            "set output OUTPUT",
            f"set label 1 {quoted(title)} at screen {20 / WIDTH:.5f},{self.y(24)} left "
            f"font ',17' textcolor '{INK}'",
        ]
        for i, line in enumerate(foot):
            y = self.y(self.height - 15 * (len(foot) - i) + 2)
            self.lines.append(f"set label {i + 2} {quoted(line)} at screen {20 / WIDTH:.5f},{y} "
                              f"left font ',10' textcolor '{FAINT}'")
        self.labels = len(foot) + 1
        self.lines += ["set multiplot", "unset key", f"set border 0 linecolor '{FAINT}'"]

    def y(self, pixels_from_top):
        return f"{1 - pixels_from_top / self.height:.5f}"

    def panel(self, number, title, left=LEFT, right=RIGHT, head=PANEL_HEAD, below=8):
        """Begins one: its margins and its title."""
        top, height = self.at, self.heights[number]
        self.at += height
        self.lines += [
            f"set lmargin at screen {left / WIDTH:.5f}",
            f"set rmargin at screen {1 - right / WIDTH:.5f}",
            f"set tmargin at screen {self.y(top + head - 8)}",
            f"set bmargin at screen {self.y(top + height - below)}",
            f"set label 20 {quoted(title)} at screen {20 / WIDTH:.5f},{self.y(top + 22)} left "
            f"font ',12' textcolor '{INK}'",
        ]

    def end_panel(self):
        """What stands on the page stands there once."""
        self.lines += [f"unset label {i}" for i in range(1, self.labels + 1)]

    def data(self, name, rows):
        self.lines += [f"${name} << EOD", *(" ".join(row) for row in rows), "EOD"]

    def script(self):
        return "\n".join([*self.lines, "unset multiplot", ""])


def scale(chart, values, axis="x"):
    """The range of an axis; bars begin at its lower end. Returns that end."""
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_FROM:
        chart.lines += [f"set logscale {axis}"]
        low = low / 2
    else:
        chart.lines += [f"unset logscale {axis}"]
        low = 0
    chart.lines += [f"set {axis}range [{low:.6g}:{max(high, 1e-9) * 1.02:.6g}]"]
    return low


def bars(chart, number, title, rows):
    """A panel of horizontal bars, the shortest on top."""
    rows = sorted(rows, key=lambda r: (judged(r), r["system"]))
    ours = next((judged(r) for r in rows if r["system"] == OURS), None)
    values = [max(judged(r), 0) for r in rows]
    is_log = min(values) > 0 and max(values) / min(values) > LOG_FROM
    chart.panel(number, f"{title}{'  (logarithmic)' if is_log else ''}")
    low = scale(chart, values)
    chart.data(f"bars{number}", (
        [f"{low:.6g}", f"{value:.6g}", str(i), quoted(r["system"]), "0x" + COLOURS[kind(
            r["system"])][1:], quoted(bar_text(r, ours))]
        for i, (r, value) in enumerate(zip(rows, values))))
    chart.lines += [
        f"set yrange [{len(rows) - 0.5}:-0.5]", "unset xtics",
        f"set ytics scale 0 textcolor '{INK}'", "set style fill solid noborder",
        f"plot $bars{number} using 1:3:1:2:($3-0.36):($3+0.36):5:ytic(4) "
        "with boxxyerror linecolor rgb variable notitle, \\",
        f"  '' using 2:3:6 with labels left offset char 0.6,0 textcolor '{INK}' notitle",
    ]
    chart.end_panel()


def bar_text(result, ours):
    text = f"{number_text(judged(result))} {result['unit']}"
    if ours and result["system"] != OURS and result["unit"] != PAIRED:
        ratio = judged(result) / ours
        text += f"   {ratio:.2f} x" if ratio < 10 else f"   {ratio:.0f} x"
    return text


def panels_of(results):
    """The results of each metric and number of workers, in the order of the run."""
    panels = {}
    for r in results:
        panels.setdefault((r["metric"], r["workers"]), []).append(r)
    return panels


def bar_chart(work, results, where):
    panels = panels_of(results)
    heights = [PANEL_HEAD + ROW * len(rows) for rows in panels.values()]
    chart = Chart(f"{work}: shorter is faster" if all(r["unit"] in ("ns", "us", "ms")
                                                      for r in results)
                  else f"{work}: shorter is better", heights, results, where)
    for i, ((metric, workers), rows) in enumerate(panels.items()):
        bars(chart, i, f"{metric}, {crew(workers)}", rows)
    return chart.script()


def latency_chart(results, where):
    """wake and steal: a bar to the p50 and a line from there to the p99."""
    groups = {}
    for r in results:
        what, _, point = r["metric"].rpartition(", ")
        if point in ("p50", "p99"):
            systems = groups.setdefault(f"{r['work']}: {what}, {crew(r['workers'])}", {})
            systems.setdefault(r["system"], {"unit": r["unit"]})[point] = r["min"]
    groups = {title: {s: v for s, v in systems.items() if "p50" in v and "p99" in v}
              for title, systems in groups.items()}
    groups = {title: systems for title, systems in groups.items() if systems}
    if not groups:
        return None
    chart = Chart("wake and steal: bar to the median, line to the 99th percentile",
                  [PANEL_HEAD + ROW * len(systems) for systems in groups.values()], results, where)
    for number, (title, systems) in enumerate(groups.items()):
        rows = sorted(systems.items(), key=lambda item: item[1]["p50"])
        ends = [v[p] for _, v in rows for p in ("p50", "p99")]
        is_log = min(ends) > 0 and max(ends) / min(ends) > LOG_FROM
        chart.panel(number, f"{title}{'  (logarithmic)' if is_log else ''}")
        low = scale(chart, ends)
        chart.data(f"points{number}", (
            [f"{low:.6g}", f"{v['p50']:.6g}", f"{v['p99']:.6g}", str(i), quoted(system),
             "0x" + COLOURS[kind(system)][1:],
             quoted(f"{number_text(v['p50'])} / {number_text(v['p99'])} {v['unit']}")]
            for i, (system, v) in enumerate(rows)))
        chart.lines += [
            f"set yrange [{len(rows) - 0.5}:-0.5]", "unset xtics",
            f"set ytics scale 0 textcolor '{INK}'", "set style fill solid noborder",
            f"plot $points{number} using 1:4:1:2:($4-0.36):($4+0.36):6:ytic(5) "
            "with boxxyerror linecolor rgb variable notitle, \\",
            "  '' using 2:4:($3-$2):(0) with vectors nohead linewidth 2 "
            f"linecolor '{FAINT}' notitle, \\",
            f"  '' using 3:4 with points pointtype 7 pointsize 0.4 linecolor '{FAINT}' notitle, \\",
            f"  '' using 3:4:7 with labels left offset char 0.6,0 textcolor '{INK}' notitle",
        ]
        chart.end_panel()
    return chart.script()


def growth_chart(title, curves, results, where):
    """Cost of a task over the size of the batch; {name: [(size, value)]}, ours told by its name."""
    chart = Chart(title, [420], results, where)
    chart.panel(0, "ns a task, over the number of tasks in a batch; both logarithmic", left=64,
                below=34)
    values = [value for points in curves.values() for _, value in points]
    chart.lines += [
        "set logscale x", "set xrange [80:1500000]",
        'set xtics ("100" 100, "1000" 1e3, "10 000" 1e4, "100 000" 1e5, "1 000 000" 1e6) '
        f"scale 0 textcolor '{INK}'",
        "set logscale y", f"set yrange [{min(values) / 1.5:.6g}:{max(values) * 1.5:.6g}]",
        f"set ytics scale 0 textcolor '{INK}'", f"set grid ytics linecolor '{COLOURS['floor']}'",
    ]
    plots, last = [], sorted(curves, key=lambda name: -sorted(curves[name])[-1][1])
    for i, name in enumerate(last):
        chart.data(f"curve{i}", ([str(size), f"{value:.6g}"] for size, value in sorted(
            curves[name])))
        colour = COLOURS["ours"] if name == OURS else LINES[i % len(LINES)]
        width = 4 if name == OURS else 2
        plots.append(f"$curve{i} using 1:2 with linespoints pointtype 7 pointsize 0.5 "
                     f"linewidth {width} linecolor '{colour}' title {quoted(name)}")
    chart.lines += [f"set key at screen {1 - (RIGHT - 20) / WIDTH:.5f},graph 0.98 left top "
                    f"reverse Left samplen 1.5 textcolor '{INK}'",
                    "plot " + ", \\\n  ".join(plots)]
    chart.end_panel()
    return chart.script()


def growth_charts(results, where):
    """{file name: script}"""
    systems, crews = {}, {}
    for r in results:
        size = re.search(r"batches of (\d+)$", r["metric"])
        if not size:
            continue
        point = (int(size.group(1)), r["min"])
        if r["workers"] == 1 and r["min"] > 0:
            systems.setdefault(r["system"], []).append(point)
        if r["system"] == OURS and r["min"] > 0:
            crews.setdefault(crew(r["workers"]), []).append(point)
    scripts = {}
    if systems:
        scripts["growth_systems"] = growth_chart(
            "growth: what a task costs as they get more, 1 worker", systems,
            [r for r in results if r["workers"] == 1], where)
    if len(crews) > 1:
        scripts["growth_workers"] = growth_chart(
            f"growth: {OURS} with more workers than cores", crews,
            [r for r in results if r["system"] == OURS], where)
    return scripts


# All of it.


def scripts_of(results, where):
    """{file name without its ending: what gnuplot is to draw}"""
    works = {}
    for r in results:
        works.setdefault(r["work"], []).append(r)
    scripts = growth_charts(works.pop("growth", []), where)
    both = works.pop("wake", []) + works.pop("steal", [])
    script = latency_chart(both, where)
    if script:
        scripts["wake_steal"] = script
    for work, rows in works.items():
        if work in TOGETHER:  # one measure of each situation; the table has the others
            rows = [r for r in rows if r["metric"].endswith((": CPU", ": memory of each"))]
        # Where nobody else is measured there is nothing to see that the table does not say.
        if any(r["system"] != OURS for r in rows):
            rivals = {(r["metric"], r["workers"]) for r in rows if r["system"] != OURS}
            scripts[work] = bar_chart(
                work, [r for r in rows if (r["metric"], r["workers"]) in rivals], where)
    return scripts


def table(results, where, drawn):
    """results.md"""
    lines = ["<!-- SPDX-License-Identifier: MIT -->",
             "<!-- Made by tools/bench_charts.py; `make bench` writes it again. -->",
             "# The race", "", where, "", versions(results), "",
             "Smaller is better. The ratio is that of the minimum to ours: above 1, and we are "
             f"faster. Where the unit is \"{PAIRED}\", it is that of the median."]
    charts = {"wake": "wake_steal", "steal": "wake_steal"}
    for work in dict.fromkeys(r["work"] for r in results):
        lines += ["", f"## {work}", ""]
        files = [charts.get(work, work)] if work != "growth" else ["growth_systems",
                                                                   "growth_workers"]
        pictures = [f"![{file}]({file}.svg)" for file in files if file in drawn]
        lines += [*pictures, ""] if pictures else []
        lines += ["| metric | workers | system | min | median | runs | ratio |",
                  "|---|--:|---|--:|--:|--:|--:|"]
        rows = [r for r in results if r["work"] == work]
        for (metric, workers), panel in panels_of(rows).items():
            ours = next((judged(r) for r in panel if r["system"] == OURS), None)
            for r in sorted(panel, key=judged):
                ratio = f"{judged(r) / ours:.2f}" if ours else ""
                name = f"**{named(r)}**" if r["system"] == OURS else named(r)
                lines.append(f"| {metric} | {workers} | {name} | {r['min']:.2f} {r['unit']} | "
                             f"{r['median']:.2f} | {r['runs']} | {ratio} |")
    return "\n".join(lines) + "\n"


def gnuplot(script, out):
    """What it complains about, or nothing."""
    done = subprocess.run(["gnuplot"], input=f"OUTPUT = {quoted(str(out))}\n{script}", text=True,
                          capture_output=True, check=False)
    if done.returncode != 0 or not out.is_file():
        return done.stderr.strip() or f"gnuplot ended with {done.returncode}"
    # What it calls the parts would come up where the pointer rests.
    text = re.sub(r"<title>gnuplot_plot_\w+</title>", "", out.read_text())
    out.write_text(text.replace("<title>Gnuplot</title>", f"<title>{out.stem}</title>"))
    return ""


def draw(results_path, folder):
    """Whether all charts are there; FOLDER is rewritten."""
    results = json.loads(results_path.read_text())
    where = f"{machine()}; {measured_on(results_path)}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = []
    if shutil.which("gnuplot"):
        for name, script in scripts_of(results, where).items():
            wrong = gnuplot(script, folder / f"{name}.svg")
            if wrong:
                print(f"no chart of {name}: {wrong}")
            else:
                drawn.append(name)
    else:
        print("no charts: gnuplot is not here (package gnuplot-nox)")
    (folder / "results.md").write_text(table(results, where, drawn))
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(drawn)} charts and the table are in {shown(folder)}", flush=True)
    return bool(drawn)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: tools/bench_charts.py RESULTS.json FOLDER")
    sys.exit(0 if draw(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])) else 1)
