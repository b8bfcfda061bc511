#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every build of a kernel has the same result and the same ops, and golden.txt has them too.

usage: counts_test.py PLUGINS [--write]
"""
import sys

import build

GOLDEN = build.HERE / "kernels" / "golden.txt"


def measure(bench, one, index):
    """name: (result, ops) of all kernels, in one build."""
    objects = []
    for source in sorted((build.HERE / "kernels").glob("*.c")):
        output = bench.path(f"{index}.{source.stem}.o")
        bench.compile(one, source, output, ["-DKERNEL_SHORT", f"-Dkernel=kernel_{source.stem}"])
        objects.append(output)
    program = bench.path(f"{index}.kernels")
    bench.link(one, [*objects, build.HERE / "kernels_main.c", build.HERE / "counting.c"], program,
               ["-lm"])
    lines = bench.execute(one, program).stdout.split("\n")
    return {words[0]: tuple(words[1:]) for words in (line.split() for line in lines) if words}


def read_golden():
    lines = (line.split() for line in GOLDEN.read_text().split("\n") if line[:1] not in ("#", ""))
    return {words[0]: tuple(words[1:]) for words in lines}


def main():
    bench = build.Bench(sys.argv[1])
    builds = build.matrix(bench)
    results = build.together(lambda item: measure(bench, item[1], item[0]), enumerate(builds))
    if "--write" in sys.argv:
        head = ("# SPDX-License-Identifier: MIT\n"
                "# Kernel, result, ops. counts_test.py --write renews it.\n")
        rows = (f"{name} {' '.join(pair)}\n" for name, pair in sorted(results[0].items()))
        GOLDEN.write_text(head + "".join(rows))
    golden = read_golden()
    for one, result in zip(builds, results):
        wrong = [f"{name}: result and ops {result.get(name)}, should be {golden.get(name)}"
                 for name in sorted({*golden, *result}) if result.get(name) != golden.get(name)]
        bench.report(not wrong, f"{len(golden)} kernels cost the same as ever with {one}", *wrong)
    bench.finish()


main()
