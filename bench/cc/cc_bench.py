#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the checks of `janusrt cc` cost: a contestant of tools/bench.py, see runner.h.

usage: cc_bench.py BUILD works
       cc_bench.py BUILD run cc 1 full|quick

Everything is compiled with -O2 by one clang, without and with the plugin:

  - The kernels of tests/cc/kernels: race.py links both builds into one program, which runs them in
    turn. Each clang that has a plugin takes part.
  - Five programs (bench/cc/programs), with clang 19: Lua, SQLite, zlib, lz4 and a mix of ours. The
    build with checks runs inside a task of the static runtime. Processes take turns, A B B A.
  - The vector sums of the kernels, inside a task, too.
  - SQLite: how much its text grows, and how much longer it takes to compile.

A kernel that is much faster with checks than without would hide what the other kernels cost. The
plain "distance" of clang 19 is so: clang 16 makes it 3.6 times as fast. So the means
that targets judge leave such kernels out, a note names them, and the means of all stand beside.

All times are CPU times. A value is a ratio to the plain build, of minima; the metric "medians" has
the ratio of medians. Sources that cannot be had are left out, with a note.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TREE / "tools"))
import race  # noqa: E402 (beside this file)
import sources  # noqa: E402

PROGRAMS = TREE / "bench/cc/programs"
KERNELS = TREE / "tests/cc/kernels"
MAJOR = 19  # of the programs
OUTLIER = 0.9  # a kernel below this ratio is left out of the judged means
LUA_LEAVES_OUT = ("lua.c", "luac.c")


def say(metric, value, unit="x plain", version=f"clang {MAJOR}"):
    print(json.dumps({"work": "cc", "system": "janusrt", "version": version, "workers": 1,
                      "metric": metric, "unit": unit, "value": value}), flush=True)


def note(text):
    print(f"note: {text}", file=sys.stderr, flush=True)


def run(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def kernels(build, quick):
    for major in (19, 16, 14):
        plugins = build / "cc/pass"
        if not (plugins / f"janusrt_ops_{major}.so").exists() or not shutil.which(f"clang-{major}"):
            note(f"no clang {major} with a plugin")
            continue
        options = argparse.Namespace(plugins=plugins, rounds=5 if quick else 15)
        ratios = {}
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(KERNELS.glob("*.c")):
                found, _, _ = race.race(options, pathlib.Path(folder), path.stem, major, [""])
                ratios[path.stem] = found[0]
                say(f"kernel {path.stem}, clang {major}", found[0][0], version=f"clang {major}")
        say_means(ratios, major)


def say_means(ratios, major):
    fair = {kernel: pair for kernel, pair in ratios.items() if min(pair) >= OUTLIER}
    for kernel in ratios.keys() - fair.keys():
        note(f"clang {major}: {kernel} is {ratios[kernel][0]:.2f} x plain, much faster with "
             "checks; the judged means leave it out")
    without_fib = {kernel: pair for kernel, pair in fair.items() if kernel != "fib"}
    for which, name in ((0, "minima"), (1, "medians")):
        for title, chosen in (("kernels", fair), ("kernels without fib", without_fib),
                              ("all kernels, outliers too", ratios)):
            say(f"{title}, clang {major}: {name}",
                race.geomean([pair[which] for pair in chosen.values()]), version=f"clang {major}")


def amalgamate(folder):
    """sqlite3.c, which SQLite's own makefile writes."""
    place = folder / "amalgamation"
    if not (place / "sqlite3.c").exists():
        if not shutil.which("tclsh"):
            raise sources.Missing("no tclsh (tcl)")
        place.mkdir(exist_ok=True)
        run([folder / "configure", "--disable-tcl"], cwd=place)
        run(["make", "-s", "sqlite3.c"], cwd=place)
    return place


def inputs_of(name):
    """(files, options) of a program; the files of others."""
    if name == "mix":
        return [], []
    folder = sources.folder_of(name)
    if name == "lua":
        files = [path for path in (folder / "src").glob("*.c") if path.name not in LUA_LEAVES_OUT]
        return sorted(files), ["-DLUA_USE_POSIX", f"-I{folder / 'src'}"]
    if name == "zlib":
        return sorted(folder.glob("*.c")), [f"-I{folder}", "-DHAVE_UNISTD_H"]
    if name == "lz4":
        return [folder / "lib/lz4.c"], [f"-I{folder / 'lib'}"]
    place = amalgamate(folder)
    return [place / "sqlite3.c"], [f"-I{place}", "-DSQLITE_THREADSAFE=0",
                                   "-DSQLITE_OMIT_LOAD_EXTENSION"]


class Pair:
    """One program, compiled plainly and with checks."""

    def __init__(self, build, folder, name, files, options, turns=1):
        """Compiles in turns, and keeps the shortest time."""
        self.name, self.folder, self.seconds, self.text = name, folder, {}, {}
        checked = [build / "cmd/janusrt", "cc", f"--clang={MAJOR}"]
        self.builds = {"plain": [f"clang-{MAJOR}"], "checked": checked}
        for kind, compiler in [*self.builds.items()] * turns:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            objects = [self.compile(kind, compiler, path, options) for path in files]
            took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            self.seconds[kind] = min(took, self.seconds.get(kind, took))
            self.text[kind] = sum(map(race.text_bytes, objects))
            in_task = ["-DIN_TASK"] if kind == "checked" else []
            main = self.compile(kind, compiler, PROGRAMS / "main.c",
                                [*in_task, f"-I{TREE / 'include'}"])
            run([*compiler, *objects, main, "-lm", "-o", folder / f"{name}.{kind}"])

    def compile(self, kind, compiler, path, options):
        output = self.folder / f"{self.name}.{path.stem}.{path.parent.name}.{kind}.o"
        run([*compiler, "-O2", "-w", *options, "-c", path, "-o", output])
        return output

    def race(self, rounds, times):
        """(ratio of minima, ratio of medians) of checked to plain."""
        told, results = {"plain": [], "checked": []}, set()
        for number in range(rounds):
            for kind in ("plain", "checked") if number % 2 == 0 else ("checked", "plain"):
                lines = run([self.folder / f"{self.name}.{kind}", times]).split()
                told[kind] += map(float, lines[:-1])
                results.add(lines[-1])
        if len(results) != 1:
            sys.exit(f"{self.name}: the builds compute different results: {results}")
        return [choose(told["checked"]) / choose(told["plain"])
                for choose in (min, statistics.median)]


def programs(build, quick):
    rounds, times = (2, 3) if quick else (6, 5)
    ratios = {}
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        for name in ("lua", "sqlite", "zlib", "lz4", "mix"):
            try:
                files, options = inputs_of(name)
            except sources.Missing as error:
                note(f"{name} is left out: {error}")
                continue
            turns = 3 if name == "sqlite" and not quick else 1
            pair = Pair(build, folder, name, [*files, PROGRAMS / f"{name}.c"], options, turns)
            ratios[name] = pair.race(rounds, times)
            say(f"program {name}: minima", ratios[name][0])
            say(f"program {name}: medians", ratios[name][1])
            if name == "sqlite":
                say("SQLite, text", pair.text["checked"] / pair.text["plain"])
                say("SQLite, time to compile", pair.seconds["checked"] / pair.seconds["plain"])
        for which, name in ((0, "minima"), (1, "medians")):
            if len(ratios) == 5:
                say(f"five programs: {name}",
                    race.geomean([pair[which] for pair in ratios.values()]))
        sums = Pair(build, folder, "sums", [KERNELS / "sum.c"], ["-Dkernel=program"])
        for value, name in zip(sums.race(4 * rounds, times), ("minima", "medians")):
            say(f"vector sums in a task: {name}", value)


def main():
    build = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["works"]:
        print("cc 1")
        return
    quick = sys.argv[5] == "quick"
    if not shutil.which(f"clang-{MAJOR}"):
        sys.exit(f"no clang-{MAJOR}")
    note(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs")
    programs(build, quick)
    kernels(build, quick)


main()
