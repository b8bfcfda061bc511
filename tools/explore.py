#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs test programs in the deterministic engine, each with many seeds.

    tools/explore.py [--minutes N] [--seed BASE] FOLDER    new seeds, on all cores, until time is up

FOLDER is a build's tests/, with a list of programs in simulated.txt. If a program fails or does
not end, the script prints the command for a replay and goes on with the others. Exit: 0 all passed,
1 a program failed. tests/sim/fixed.sh runs one program with the seeds that every build tries.
"""
import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

PATIENCE_S = 300  # for one program; the slowest takes less than two
PROGRESS_S = 5
SKIPPED = 77


def run(folder, program, seed):
    """None: it passed or was skipped (then True); else what went wrong, and its last words."""
    path = folder / program
    environment = dict(os.environ, JANUSRT_SEED=str(seed))
    process = subprocess.Popen([path], env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the children of tests that must die
        output, _ = process.communicate()
        return f"hangs: no end after {PATIENCE_S} s", output
    if process.returncode in (0, SKIPPED):
        return None, process.returncode == SKIPPED
    if process.returncode < 0:
        return f"died: {signal.Signals(-process.returncode).name}", output
    return f"failed: exit code {process.returncode}", output


def tell(folder, program, seed, what, output):
    lines = output.decode(errors="replace").splitlines()
    passed = ("ok ", "1..", "janusrt: worker")
    last = [line for line in lines if not line.startswith(passed)][-12:]
    path = os.path.relpath(folder / program)
    print(f"{program} {what}", *("    " + line for line in last),
          f"  again: JANUSRT_SEED={seed} {path}", sep="\n", flush=True)


class Search:
    """Hands out programs and seeds, in an order that a base seed and a list of programs give."""

    def __init__(self, folder, programs, base, minutes):
        self.folder, self.programs, self.base = folder, programs, base
        self.began = time.monotonic()
        self.end = self.began + minutes * 60
        self.lock = threading.Lock()
        self.given = self.runs = self.failures = 0
        self.next_line = self.began + PROGRESS_S

    def take(self):
        with self.lock:
            if time.monotonic() >= self.end:
                return None
            number = self.given
            self.given += 1
        return (self.programs[number % len(self.programs)],
                self.base + number // len(self.programs))

    def note(self, program, seed, what, output):
        with self.lock:
            self.runs += 1
            if what is not None:
                self.failures += 1
                tell(self.folder, program, seed, what, output)
            now = time.monotonic()
            if now >= self.next_line:
                self.next_line = now + PROGRESS_S
                print(f"{now - self.began:5.0f} s: {self.runs} runs, {self.failures} failures, "
                      f"at seed {seed}", flush=True)

    def work(self):
        while (job := self.take()) is not None:
            what, output = run(self.folder, *job)
            self.note(*job, what, output)


def search(folder, base, minutes):
    programs = (folder / "simulated.txt").read_text().split()
    base = base or int(time.strftime("%Y%m%d%H%M")) * 1000
    cores = len(os.sched_getaffinity(0))
    print(f"{len(programs)} programs, seeds from {base}, {minutes:g} minutes, {cores} at a time",
          flush=True)
    hunt = Search(folder, programs, base, minutes)
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        for job in [pool.submit(hunt.work) for _ in range(cores)]:
            job.result()
    print(f"{hunt.runs} runs, {hunt.failures} failures")
    return 1 if hunt.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=lambda text: int(text, 0), default=0)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    return search(options.folder, options.seed, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
