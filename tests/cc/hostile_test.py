#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile programs, built by `janusrt cc`, run as tasks with a budget beside a neighbour.

usage: hostile_test.py JANUSRT
CC_MATRIX=all in the environment: every installed clang.

hostile/hostile.c says what each program has to do. Here the numbers of ops and the results of all
builds are compared, too.
"""

import sys

import tasks

SOURCES = ("loops.c", "calls.c", "library.c", "objects.cpp")
FOLDER = tasks.HERE / "hostile"


def make(bench, major, level):
    """Builds all programs with one compiler at one level; returns the executable."""
    objects = [bench.compile(FOLDER / source, level, major) for source in SOURCES]
    objects.append(bench.plain(FOLDER / "hostile.c"))
    return bench.link(objects, f"hostile{level}-{major}", major)


def run_one(program, name):
    """What the program printed, as a dictionary; or why it failed."""
    done = tasks.run([program, name], timeout=120)
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 11 or words[0] != name:
        return None, f"{name}: exit {done.returncode} {done.stdout.strip()} {done.stderr.strip()}"
    return dict(zip(words[1::2], words[2::2])), None


def main():
    bench = tasks.Bench(sys.argv[1])
    builds = [(bench.majors[0], level) for level in ("-O0", "-O2", "-O3")]
    if tasks.WHOLE:
        builds += [(major, level) for major in bench.majors[1:] for level in ("-O0", "-O2")]
    programs = tasks.together(lambda build: make(bench, *build), builds)
    names = tasks.good([programs[0]]).stdout.split()
    bench.report(len(names) >= 40, f"there are {len(names)} hostile programs")

    first = {}
    for build, program in zip(builds, programs):
        few = {*names[::4], "small_nest"}  # -O3 unrolls nests
        which = [name for name in names if name in few or build[1] != "-O3" or tasks.WHOLE]
        results = tasks.together(lambda name: run_one(program, name), which)
        wrong = [why for _, why in results if why]
        facts = {name: fact for name, (fact, _) in zip(which, results) if fact}
        for name, fact in facts.items():
            same = first.setdefault(name, fact)
            for key in ("ops", "result"):
                if fact[key] != same[key]:
                    wrong.append(f"{name}: {key} {fact[key]}, and {same[key]} in the first build")
        said = f"clang {build[0]} {build[1]}"
        bench.report(not wrong, f"{len(which)} hostile programs are stopped, and go on: {said}",
                     *wrong)
        if facts:
            left = [int(fact["left"]) for fact in facts.values()]
            least = min(facts, key=lambda name: float(facts[name]["share"]))
            beyond = max(int(fact["beyond"]) for fact in facts.values())
            print(f"# {said}: work beyond the budget at most {beyond} ops; ops left at most "
                  f"{max(left)}, none in {left.count(0)} of {len(left)}; least share of the "
                  f"neighbour {facts[least]['share']} ({least})")
    bench.finish()


main()
