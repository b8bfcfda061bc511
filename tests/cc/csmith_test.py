#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs have the same result as without the pass, and the same ops in every build.

usage: [CSMITH=programs] [SMALL=1] [FIRST=seed] csmith_test.py PLUGINS

Without CSMITH there are a dozen small programs in four builds. CSMITH=1000 makes as many large
ones, in seven builds; with SMALL=1 small ones.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import build

FEW = 12
SMALL = ("--max-funcs", "3", "--max-block-depth", "3", "--max-block-size", "3",
         "--max-expr-complexity", "6")
LARGE = ("--max-funcs", "6")
HEADERS = pathlib.Path("/usr/include/csmith")
BUILDS = ((19, "-O0", ""), (19, "-O2", ""), (19, "-O3", ""), (16, "-O2", ""), (14, "-O0", ""),
          (14, "-O2", ""), (19, "-O1", "naive"))

LEFT_OUT = BUILDS[2:5]


def attempt(bench, builds, seed, size):
    """None if the program is endless, else the list of what is wrong."""
    source, program = bench.path(f"{seed}.c"), bench.path(f"{seed}.run")
    include = ["-I", str(HEADERS)]
    subprocess.run(["csmith", "--seed", str(seed), "--no-packed-struct", *size, "-o", str(source)],
                   check=True, capture_output=True, cwd=bench.folder)
    build.run([f"clang-{bench.majors[0]}", "-w", "-O1", *include, source, "-o", program],
              timeout=build.PATIENCE)
    try:
        done = build.run([program], check=False, timeout=3)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:  # clang dropped an endless loop without effects: it may do so
        return None
    expected = done.stdout
    wrong, first = [], None
    for one in builds:
        obj = bench.path(f"{seed}.o")
        done = bench.compile(one, source, obj, include, check=False)
        if done.returncode != 0:
            wrong.append(f"seed {seed}, {one}: {done.stderr[-2000:]}")
            break
        bench.link(one, [obj, bench.path("counting.o")], program)
        try:
            done = bench.execute(one, program, env={"COUNT_TELL": "1"}, timeout=build.PATIENCE,
                                 check=False)
        except subprocess.TimeoutExpired:
            wrong.append(f"seed {seed}, {one}: does not end")
            break
        first = first or done.stderr
        if done.stdout != expected:
            wrong.append(f"seed {seed}, {one}: {done.stdout!r}, should be {expected!r}")
        if done.stderr != first or not done.stderr.startswith("ops "):
            wrong.append(f"seed {seed}, {one}: {done.stderr!r}, the first build has {first!r}")
    for path in (source, program, bench.path(f"{seed}.o")):
        path.unlink(missing_ok=True)
    if os.environ.get("CSMITH"):
        print(f"# seed {seed}: " + (wrong[0] if wrong else f"equal, {first.strip()}"), flush=True)
    return wrong


def main():
    bench = build.Bench(sys.argv[1])
    if not shutil.which("csmith") or not HEADERS.is_dir():
        print("ok 1 - random programs # SKIP no csmith (csmith, libcsmith-dev)")
        sys.exit(77)
    many, small = os.environ.get("CSMITH"), os.environ.get("SMALL")
    count, first = int(many or FEW), int(os.environ.get("FIRST", "1"))
    builds = [build.Build(*one) for one in BUILDS
              if one[0] in bench.majors and (many or one not in LEFT_OUT)]
    build.run([f"clang-{bench.majors[0]}", "-O1", "-c", build.HERE / "counting.c", "-o",
               bench.path("counting.o")])
    results = build.together(
        lambda seed: attempt(bench, builds, seed, LARGE if many and not small else SMALL),
        range(first, first + count))
    endless = results.count(None)
    wrong = [line for result in results if result for line in result]
    print(f"# seeds {first} to {first + count - 1}: {endless} programs do not end, do not count")
    bench.report(not wrong and endless < count,
                 f"{count} random programs cost the same in {len(builds)} builds", *wrong)
    bench.finish()


main()
