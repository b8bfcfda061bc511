#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small programs cost exactly what their source says, and endless ones end with their budget.

usage: exact_test.py PLUGINS
"""
import sys

import build

BUDGET = 10007  # neither a multiple of a strip nor of a slice
STRIP, REGISTERS = 21, 22  # programs of forever.c that touch one byte in each round


def exact(bench, one, index, source, flags):
    """What the program printed about wrong counts, and the counts that only builds compare."""
    obj, program = bench.path(f"{index}.{source}.o"), bench.path(f"{index}.{source}.exact")
    bench.compile(one, build.HERE / source, obj, flags)
    libraries = ["-lstdc++"] if source.endswith(".cpp") else []
    bench.link(one, [obj, build.HERE / "exact_main.c", build.HERE / "counting.c"], program,
               libraries)
    done = bench.execute(one, program, check=False)
    lines = done.stdout.strip().split("\n")
    wrong = [line for line in lines[:-1] if "should be" in line]
    if done.returncode != 0 and not wrong:
        wrong.append(f"exit {done.returncode} {done.stderr}")
    return wrong, [line for line in lines[:-1] if "should be" not in line]


def forever(bench, one, index):
    """Programs that did not end with exactly their budget."""
    obj, program = bench.path(f"{index}.forever.o"), bench.path(f"{index}.forever")
    bench.compile(one, build.HERE / "forever.c", obj)
    bench.link(one, [obj, build.HERE / "counting.c"], program)
    wrong = []
    for number in range(int(bench.execute(one, program).stdout)):
        done = bench.execute(one, program, str(number), env={"COUNT_BUDGET": str(BUDGET)},
                             check=False)
        touched, said = (done.stdout.split("\n") + ["", ""])[:2]
        if said != f"exhausted after {BUDGET}":
            wrong.append(f"program {number}: exit {done.returncode}, {done.stdout!r}")
        # The round that cannot be paid may have begun: its payment stands at its end.
        if number in (STRIP, REGISTERS) and touched not in (f"touched {BUDGET}",
                                                            f"touched {BUDGET + 1}"):
            wrong.append(f"program {number}: {touched}")
    return wrong


def main():
    bench = build.Bench(sys.argv[1])
    builds = build.matrix(bench)
    numbered = list(enumerate(builds))
    results = build.together(lambda item: exact(bench, item[1], item[0], "exact.c",
                                              ["-fno-discard-value-names"]), numbered)
    for one, (wrong, _) in zip(builds, results):
        bench.report(not wrong, f"loops, calls, copies and jumps are exact with {one}", *wrong)

    flags = ["-std=c++17", "-U__OPTIMIZE__", "-Xclang", "-mno-constructor-aliases",
             "-fno-discard-value-names"]
    plain = [(index, one) for index, one in numbered if not one.target]
    results = build.together(
        lambda item: exact(bench, item[1], item[0], "exact_cxx.cpp", flags), plain)
    for (_, one), (wrong, printed) in zip(plain, results):
        if printed != results[0][1]:
            wrong.append(f"{printed}, but {plain[0][1]} has {results[0][1]}")
        bench.report(not wrong, f"exceptions and destructors are exact with {one}", *wrong)

    results = build.together(lambda item: forever(bench, item[1], item[0]), numbered)
    for one, wrong in zip(builds, results):
        bench.report(not wrong, f"endless programs end with exactly their budget, {one}", *wrong)
    bench.finish()


main()
