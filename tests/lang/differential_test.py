#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The interpreter and built programs agree in output, ops, memory and trace hash.

usage: differential_test.py JANUSRT

Random programs (random_programs.py) run in `janusrt run`, and as built by gcc -O0, gcc -O2 and
`janusrt cc`, all with the same seeds of the schedule. What they print, their exit status and their
report (JANUSRT_LANG_REPORT) must be the same. A wrong pair is printed with the command that makes
the program again.

PROGRAMS=n in the environment: so many programs (200). FIRST=n: the first seed (1).
"""

import concurrent.futures
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import random_programs

HERE = pathlib.Path(__file__).parent
TOGETHER = 20  # programs in one file: building takes longer than running
SCHEDULES = (1, 7)


@functools.cache
def builds(janusrt):
    found = []
    if shutil.which("gcc"):
        found += [("gcc -O0", ["--cc=gcc", "-O0"]), ("gcc -O2", ["--cc=gcc", "-O2"])]
    asked = subprocess.run([janusrt, "cc", "--print", "-c", "a.c"], capture_output=True,
                           check=False)
    if asked.returncode == 0: # it has a plugin
        found.append(("janusrt cc", ["--cc=janusrt cc", "-O2"]))
    return found


def outcome(command, seed):
    environment = dict(os.environ, JANUSRT_SEED=str(seed), JANUSRT_LANG_REPORT="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, check=False)
    errors = [line for line in done.stderr.split("\n") if line]
    return done.stdout, errors, done.returncode


def compare(janusrt, folder, seed, wild):
    """Returns what differs, as lines."""
    name = f"{'wild' if wild else 'tame'}{seed}"
    path = folder / f"{name}.jan"
    path.write_text(random_programs.source(seed, 1 if wild else TOGETHER, wild), encoding="utf-8")
    command = f"random_programs.py {seed} {'--wild' if wild else TOGETHER}"
    wanted = {schedule: outcome([janusrt, "run", str(path)], schedule) for schedule in SCHEDULES}
    checked = wanted[SCHEDULES[0]]
    if not wild and (checked[2] != 0 or not checked[0]):
        return [f"{command}: exit {checked[2]}", *checked[1][:5]], 0
    if any("error[" in line for line in checked[1]):
        return [f"{command}: does not compile", *checked[1][:5]], 0
    wrong = []
    for title, options in builds(janusrt):
        program = folder / f"{name}-{title.replace(' ', '')}"
        made = subprocess.run([janusrt, "build", *options, str(path), "-o", str(program)],
                              capture_output=True, text=True, timeout=600, check=False)
        if made.returncode != 0:
            wrong += [f"{command}: {title} does not build it", *made.stderr.split("\n")[:8]]
            continue
        for schedule, want in wanted.items():
            got = outcome([str(program)], schedule)
            for what, left, right in zip(("output", "stderr", "exit"), want, got):
                if left != right:
                    wrong.append(f"{command}, JANUSRT_SEED={schedule}: {what} of {title} differs: "
                                 f"{str(left)[-300:]!r} {str(right)[-300:]!r}")
        program.unlink()
    return wrong, 1


def main():
    janusrt = sys.argv[1]
    programs = int(os.environ.get("PROGRAMS", "200"))
    first = int(os.environ.get("FIRST", "1"))
    tame = range(first, first + max(1, programs // TOGETHER))
    wild = range(first, first + max(1, programs // (2 * TOGETHER)))
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for kind, seeds in (("tame", tame), ("wild", wild)):
                results = list(pool.map(
                    lambda seed: compare(janusrt, folder, seed, kind == "wild"), seeds))
                wrong = [line for lines, _ in results for line in lines]
                count = len(seeds) * (TOGETHER if kind == "tame" else 1)
                number = 1 if kind == "tame" else 2
                print(f"{'not ok' if wrong else 'ok'} {number} - {count} {kind} programs do the "
                      f"same in the interpreter and in {len(builds(janusrt))} builds")
                for line in wrong[:40]:
                    print(f"# {line}")
                failed += bool(wrong)
    print("1..2")
    sys.exit(1 if failed else 0)


main()
