#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benches. Usage: tools/bench.py [--names] PROGRAMS.json RESULTS.json FOLDER

`make bench` calls it. The environment says what to do. ONLY=spawn,fib names works, or benches by
their files (ONLY=heap_bench). QUICK=1 makes everything small. CHARTS=1 draws charts also after a
partial run. BEFORE=FOLDER names the build folder of another version of this tree, built for a race.
Its programs take turns with ours as "janusrt before". Such a run draws no charts. With --names the
script only checks ONLY and BEFORE.

The works of runner.h are a race. All programs that know a work take turns, A B C A B C, in five
rounds, so that a slow moment of the machine hits all of them. The table shows the minimum and the
median of each system, and the ratio of its minimum to ours. Above 1 we are faster. Works that take
very long have fewer rounds (LONG), and a very slow peer runs once. The table says so. The other
benches run once each and print their own results.

Contestants of the works with servers (bench/net) measure pairs, raw epoll and the server in turns.
Their ratio is the median of all pairs. A table shows one situation, with all medians of a system in
a line.

If a peer fails, the table says so, and the run goes on. If one of ours fails, the run fails.

RESULTS.json becomes a list of {"work", "system", "version", "workers", "metric", "unit", "min",
"median", "runs"} of this run alone. "runs" counts measurements; a program makes several in a round.
Our system is "janusrt". A full run in which all of ours ended well, or any run with CHARTS=1, also
rewrites FOLDER, docs/bench (bench_charts.py). So the folder always shows one run.
"""

import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

import bench_charts
import bench_targets
from bench_results import (BEFORE, OURS, TOGETHER, crew, is_ratio, judged, named, number_text,
                           rivals_of, shown)

ROUNDS = 5
TIMEOUT_S = 300
TIMEOUTS_S = {"cc": 3600}  # it compiles SQLite twice, and each kernel six times

# The works in the order they run, and the numbers of workers they run with.
WORKS = {
    "switch": (1,),
    "yield": (1, 2),
    "spawn": (1, 2),
    "million": (1, 2),
    "fib": (1, 2),
    "skynet": (1, 2),
    "both": (1, 2),
    "loop": (1, 2),
    "pingpong": (1, 2),
    "buffered": (1, 2),
    "mpmc": (1, 2),
    "select": (1, 2),
    "wake": (2,),
    "steal": (2,),
    "timers": (1, 2),
    "cast": (1, 2),
    "call": (1, 2),
    "ring": (1, 2),
    "actors": (1, 2),
    "restart": (1, 2),
    "neighbours": (1, 2),
    "checks": (1,),
    "live": (1, 2),
    "crowd": (1, 2),
    "growth": (1, 2, 4, 8, 64),
    "latency": (2,),
    "sleepers": (1, 2),
    "echo": (1, 2),
    "accept": (1,),
    "idle": (1,),
    "http": (1, 2),
    "http_idle": (1,),
    "http_load": (1,),
    "http_fair": (1,),
    "https": (1,),
    "cc": (1,),
}
# rounds, full and quick
LONG = {"sleepers": (1, 5), "echo": (5, 5), "accept": (5, 5), "idle": (2, 1), "http": (5, 5),
        "http_idle": (2, 1), "http_load": (3, 3), "http_fair": (3, 3), "https": (5, 5),
        "cc": (1, 1)}
SHORT = ("growth",)  # so many points that each is measured as in a quick run
APART = (*TOGETHER, "cc")  # works that do not race with another version of this tree


class Program:
    """Something that takes part, and how many workers it allows in each work (0: any number)."""

    def __init__(self, path, ours, before=False):
        self.path, self.ours, self.before = path, ours, before
        self.name = pathlib.Path(path).name  # until it has told its system
        self.works, self.wrong = {}, None
        self.notes = {}  # what it says on stderr behind "note: "; the order counts, not the values
        try:
            told = subprocess.run([path, "works"], check=True, capture_output=True, text=True,
                                  timeout=TIMEOUT_S).stdout
            self.works = {line.split()[0]: int(line.split()[1]) for line in told.splitlines()}
        except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
            self.wrong = f"does not say what it knows: {error}"

    def knows(self, work, workers):
        most = self.works.get(work)
        if most is None or self.before and work in APART:
            return False
        return most == 0 or workers <= most

    def run(self, work, workers, size):
        """(measurements, what went wrong or None)"""
        command = [self.path, "run", work, str(workers), size]
        patience = TIMEOUTS_S.get(work, TIMEOUT_S)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=patience,
                                  check=False)
        except subprocess.TimeoutExpired:
            return [], f"took more than {patience} s"
        except OSError as error:
            return [], str(error)
        try:
            found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            if self.before:  # such a program may also measure others
                found = [one for one in found if one["system"].startswith(OURS)]
            for one in found:
                one["version"] = one["version"].strip()
                one["value"] = float(one["value"])
                if self.before:
                    one["system"] = BEFORE + one["system"].removeprefix(OURS)
                named(one)
        except (ValueError, KeyError) as error:
            return [], f"tells what is no measurement: {error}"
        if found:
            self.name = named(found[0])
        self.notes |= {line.removeprefix("note: "): None for line in done.stderr.splitlines()
                       if line.startswith("note: ")}
        if done.returncode != 0:
            return found, why_it_ended(done)
        return found, None if found else "told nothing"

    def take_notes(self):
        notes, self.notes = list(self.notes), {}
        return notes


def why_it_ended(done):
    said = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:
        said.append(f"killed by {signal.Signals(-done.returncode).name}")
    return said[-1].strip()[:160] if said else f"ended with {done.returncode}"


class Progress:
    """What runs now: on a terminal one line that changes, else a line for each work."""

    def __init__(self, total):
        self.total, self.done, self.last = total, 0, None
        self.terminal = sys.stdout.isatty()

    def tell(self, work, workers, round_number, rounds, name):
        self.done += 1
        head = f"[{self.done}/{self.total}] {work}, {crew(workers)}"
        if self.terminal:
            text = f"{head}: {name} …"
            if rounds > 1:
                text += f" round {round_number} of {rounds}"
            print(f"\r\033[K{text[:shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif self.last != (work, workers):
            print(f"{head} …", flush=True)
        self.last = (work, workers)

    def skip(self, runs):
        self.done += runs

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def rounds_of(work, quick):
    return LONG.get(work, (ROUNDS, ROUNDS))[quick]


def race(programs, work, workers, quick, progress):
    """Lets all programs that know the work take turns: ([result], [(program, complaint)])."""
    size = "quick" if quick or work in SHORT else "full"
    patience = 3 if size == "quick" else 10  # seconds; a peer that takes longer runs once
    rounds = rounds_of(work, quick)
    values, wrongs, out = {}, [], set()
    for round_number in range(1, rounds + 1):
        for program in programs:
            if program in out or not program.knows(work, workers):
                continue
            progress.tell(work, workers, round_number, rounds, program.name)
            started = time.monotonic()
            found, wrong = program.run(work, workers, size)
            slow = (not (program.ours or program.before)
                    and work not in TOGETHER  # these take as long as they are told
                    and time.monotonic() - started > patience)
            if wrong:
                wrongs.append((program, f"{program.name} does not survive: {wrong}"))
            elif slow and round_number < rounds:
                wrongs.append((None, f"{program.name} takes long, so it did not run again"))
            if wrong or slow:
                out.add(program)
                progress.skip(rounds - round_number)
            for one in found:
                key = tuple(one[k] for k in ("work", "system", "version", "workers", "metric",
                                             "unit"))
                values.setdefault(key, []).append(one["value"])
    results = []
    for key, told in values.items():
        result = dict(zip(("work", "system", "version", "workers", "metric", "unit"), key))
        result.update(min=min(told), median=statistics.median(told), runs=len(told))
        results.append(result)
    return results, wrongs


def together_text(result):
    """Of ratios also the minimum, which shows the quietest moment."""
    if result is None:
        return ""
    least = f" ({result['min']:.2f})" if is_ratio(result) and result["runs"] > 1 else ""
    return f"{result['median']:.2f}{least}"


def show_together(work, workers, results):
    """A table for each situation: a line for each system, a column for the medians of a measure."""
    situations = {}
    for r in results:
        situation, _, measure = r["metric"].rpartition(": ")
        systems = situations.setdefault(situation, {})
        systems.setdefault(named(r), {})[f"{measure}, {r['unit']}"] = r
    for situation, systems in situations.items():
        measures = list(dict.fromkeys(m for row in systems.values() for m in row))
        width = max(16, *(len(name) for name in systems))
        turns = max(r["runs"] for row in systems.values() for r in row.values())
        note = ", and in brackets minima" if turns > 1 else ""
        print(f"\n{work}, {crew(workers)}: {situation}; medians of {turns}{note}")
        print(f"  {'':{width}}  {'  '.join(measures)}")
        for name in sorted(systems, key=lambda n: systems[n].get(measures[0], {"median": 1e9})[
                "median"]):
            cells = (f"{together_text(systems[name].get(m)):>{len(m)}}" for m in measures)
            print(f"  {name:{width}}  {'  '.join(cells)}".rstrip())


def show_apart(work, workers, results):
    """A table for each metric where systems are rivals; the others together."""
    alone = []
    for metric in dict.fromkeys(r["metric"] for r in results):
        lines = sorted((r for r in results if r["metric"] == metric), key=lambda r: r["min"])
        if len(lines) == 1 and lines[0]["system"] == OURS:
            alone.append(lines[0])
            continue
        ours = next((r["min"] for r in lines if r["system"] == OURS), None)
        width = max(24, *(len(named(r)) for r in lines))
        print(f"\n{work}, {crew(workers)}: {metric}, {lines[0]['unit']}")
        print(f"  {'':{width}}  {'min':>10}  {'median':>10}  {'runs':>4}  {'ratio to ours':>14}")
        for r in lines:
            ratio = f"{r['min'] / ours:12.2f} x" if ours else ""
            print(f"  {named(r):{width}}  {r['min']:10.2f}  {r['median']:10.2f}  {r['runs']:4}  "
                  f"{ratio}".rstrip())
    if alone:
        print(f"\n{work}, {crew(workers)}: {named(alone[0])} alone")
        width = max(24, *(len(r["metric"]) for r in alone))
        print(f"  {'':{width}}  {'min':>10}  {'median':>10}  {'runs':>4}")
        for r in alone:
            print(f"  {r['metric']:{width}}  {r['min']:10.2f}  {r['median']:10.2f}  {r['runs']:4}  "
                  f"{r['unit']}")


def show(work, workers, results, notes):
    if work in TOGETHER:
        show_together(work, workers, results)
    else:
        show_apart(work, workers, results)
    if notes and not results:
        print(f"\n{work}, {crew(workers)}")
    for note in notes:
        print(f"  {note}")
    for line in bench_targets.verdicts(results):
        print(f"  {line}")
    sys.stdout.flush()


def summary(results):
    """Each metric of each work in a line: ours, the best of the others, who was faster."""
    lines, won = [], 0
    for ours in (r for r in results if r["system"] == OURS):
        rivals = rivals_of(ours, results)
        if not rivals:
            continue
        best = min(rivals, key=judged)
        ratio = judged(best) / judged(ours) if judged(ours) > 0 else float("inf")
        won += ratio >= 1
        lines.append((f"{ours['work']}, {ours['workers']}", ours["metric"],
                      f"{number_text(judged(ours))} {ours['unit']}",
                      f"{number_text(judged(best))} {named(best)}",
                      f"{ratio:.2f} x", "won" if ratio >= 1 else "lost"))
    if not lines:
        return
    lines.insert(0, ("work, workers", "metric", "ours", "best of the others", "ratio", ""))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    print(f"\nOurs beside the best of the others: {won} of {len(lines) - 1} won")
    for line in lines:
        cells = (f"{cell:{width}}" for cell, width in zip(line, widths))
        print(f"  {'  '.join(cells)}  {line[5]}".rstrip())


def leave_unbuilt(listed, path):
    """Takes the peers that tools/bench_peers.py could not build off the list: [(program, why)]."""
    unbuilt = json.loads(path.read_text()) if path.is_file() else {}
    listed["peers"] = [peer for peer in listed["peers"] if peer not in unbuilt]
    return list(unbuilt.items())


def programs_before(folder):
    """The programs of another build folder. Raises OSError or ValueError."""
    path = pathlib.Path(folder) / "bench" / "programs.json"
    found = [p for p in json.loads(path.read_text())["ours"] if pathlib.Path(p).is_file()]
    if not found:
        raise ValueError(f"{path} names no program that was built")
    return found


def load_programs(listed, before, quick):
    """The programs that say what they know, and whether one of ours does not."""
    ours = listed["ours"] + ([] if quick else listed["not_quick"])
    programs = [Program(path, True) for path in ours]
    programs += [Program(path, False, True) for path in before]
    programs += [Program(path, False) for path in listed["peers"]]
    for program in programs:
        if program.wrong:
            print(f"{program.name} {program.wrong}")
    return ([p for p in programs if not p.wrong], any(p.ours and p.wrong for p in programs))


def run_works(programs, works, quick, keep):
    """(all results, whether one of our programs failed). Calls `keep` with all results so far after
    each work: a run that is broken off has what it measured."""
    plan = [(work, workers) for work in works for workers in WORKS[work]
            if any(p.knows(work, workers) for p in programs)]
    progress = Progress(sum(rounds_of(work, quick) * sum(p.knows(work, workers) for p in programs)
                            for work, workers in plan))
    everything, failed = [], False
    for work, workers in plan:
        results, wrongs = race(programs, work, workers, quick, progress)
        progress.clear()
        notes = [text for _, text in wrongs]
        notes += dict.fromkeys(note for p in programs for note in p.take_notes())
        if rounds_of(work, quick) < ROUNDS and work not in TOGETHER:
            notes.insert(0, f"rounds: {rounds_of(work, quick)}, as it takes very long")
        show(work, workers, results, notes)
        everything += results
        keep(everything)
        failed = failed or any(program is not None and program.ours for program, _ in wrongs)
    return everything, failed


def write_results(results, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")


def is_set(name):
    return os.environ.get(name, "") not in ("", "0")


def main(arguments):
    names_only = arguments[:1] == ["--names"]
    files = arguments[1:] if names_only else arguments
    listed = json.loads(pathlib.Path(files[0]).read_text())
    only = os.environ.get("ONLY", "").replace(",", " ").split()
    benches = {pathlib.Path(p).name: p for p in listed["benches"]}
    unknown = [name for name in only if name not in WORKS and name not in benches]
    if unknown:
        print(f"no such work: {' '.join(unknown)}\nworks:   {' '.join(WORKS)}\n"
              f"benches: {' '.join(benches)}")
        return 2
    try:
        before = programs_before(os.environ["BEFORE"]) if is_set("BEFORE") else []
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"BEFORE={os.environ['BEFORE']} is no build folder of this project: {error}\n"
              "In the other tree, run: make bench ONLY=switch QUICK=1\n"
              "Then pass its folder build/gcc-release.")
        return 2
    if names_only:
        return 0
    quick = is_set("QUICK")
    for name in listed["missing"]:
        print(f"not here, left out: {name}")
    for path, why in leave_unbuilt(listed, pathlib.Path(files[0]).with_name("unbuilt.json")):
        print(f"does not build, left out: {pathlib.Path(path).name}: {why}")

    failed, results = False, []
    works = [work for work in WORKS if not only or work in only]
    if works:
        programs, failed = load_programs(listed, before, quick)
        out = pathlib.Path(files[1])
        results, lost = run_works(programs, works, quick, lambda so_far: write_results(so_far, out))
        failed = failed or lost
        summary(results)
        for line in bench_targets.shape_verdicts(results):
            print(f"  {line}")
        write_results(results, out)
        print(f"\n{len(results)} results are in {shown(out)}", flush=True)
    if results and not before and (is_set("CHARTS") or not (only or quick or failed)):
        bench_charts.draw(pathlib.Path(files[1]), pathlib.Path(files[2]))

    for name, path in benches.items():
        if name in only or (not only and not quick):
            print(f"\n{name}:", flush=True)
            failed = subprocess.run([path], check=False).returncode != 0 or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
