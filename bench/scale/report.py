#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predicts how the scheduler scales: measures two cores, simulates more, prints tables.

    report.py DIRECTORY [--measure FILE | --load FILE] [--costs "NAME=VALUE ..."]

DIRECTORY holds the programs scale and scale_measure. Tables are Markdown, as in docs/scaling.md.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

WORKERS = (1, 2, 4, 8, 16, 32, 128)
OPERATIONS = {"fib": "spawns", "mpmc": "messages", "echo": "round trips"}
# Enough work for 128 workers, and little enough to simulate.
SIZES = {"fib": 31, "mpmc": 40, "echo": 50}
REAL_SIZES = {"fib": 27, "mpmc": 200, "echo": 200}
BUSY = 0.5  # from here on a resource counts as saturated


def costs_of(text):
    """{"rmw": 4600, ...} of "rmw=4600 ..."."""
    return {name: int(value) for name, value in (word.split("=") for word in text.split())}


class Run:
    """One simulated run: ps of an operation, and (busy, waiting, name), busiest first."""

    def __init__(self, text):
        lines = text.splitlines()
        self.ps = int(lines[0])
        self.found = []
        for line in lines[1:]:
            busy, waiting, name = line.split(" ", 2)
            self.found.append((float(busy), float(waiting), name))


def simulate(directory, work, workers, costs, size=None):
    command = [os.path.join(directory, "scale"), work, str(workers), str(size or SIZES[work])]
    command += [f"{name}={value}" for name, value in costs.items()]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    return Run(result.stdout)


def simulate_all(directory, asked):
    """{key: Run} of {key: (work, workers, costs)}, on all cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {key: pool.submit(simulate, directory, *what) for key, what in asked.items()}
        return {key: future.result() for key, future in futures.items()}


def measure(directory):
    """The costs, and {(work, workers): ns} on the real machine, one after the other: the median
    of the turns of the least disturbed of three runs."""
    program = os.path.join(directory, "scale_measure")

    def ask(*words):
        return subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, timeout=120,
                              check=True).stdout

    samples = [costs_of(ask("costs")) for _ in range(3)]
    costs = {name: int(statistics.median(sample[name] for sample in samples))
             for name in samples[0]}
    works = {}
    for work, size in REAL_SIZES.items():
        for workers in (1, 2):
            works[work, workers] = min(
                float(ask(work, str(workers), str(size), "7")) for _ in range(3))
    return costs, works


def fit_plain(directory, costs, real_ns):
    """The cost of a plain access with which fib takes the measured time on one core."""
    low, high = 50, 1000
    at = [simulate(directory, "fib", 1, dict(costs, plain=plain), 22).ps for plain in (low, high)]
    slope = (at[1] - at[0]) / (high - low)
    return max(1, round(low + (real_ns * 1000 - at[0]) / slope))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join(" --- " if i == 0 else " ---: " for i in range(len(head))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_costs(costs):
    table(["cost", "ns"], [[name, f"{value / 1000:g}"] for name, value in costs.items()
                           if name != "group"])


def print_errors(directory, costs, real):
    asked = {key: (*key, costs) for key in real}
    runs = simulate_all(directory, asked)
    rows = []
    for key, ns in real.items():
        predicted = runs[key].ps / 1000
        rows.append([f"{key[0]}, {key[1]}", f"{ns:.1f}", f"{predicted:.1f}",
                     f"{(predicted / ns - 1) * 100:+.0f} %"])
    table(["work, workers", "measured ns", "predicted ns", "error"], rows)


def print_prediction(runs):
    for work, operation in OPERATIONS.items():
        first = runs[work, 1].ps
        rows = []
        for workers in WORKERS:
            run = runs[work, workers]
            busy, waiting, name = run.found[0]
            rows.append([str(workers), f"{1e6 / run.ps:.2f}", f"{first / run.ps:.2f}", name,
                         f"{min(busy, 1) * 100:.0f} %", f"{waiting:.1f}"])
        print(f"{work}, millions of {operation} a second:\n")
        table(["workers", "million/s", "speed-up", "busiest", "busy", "waiting"], rows)
        full = [workers for workers in WORKERS if runs[work, workers].found[0][0] > BUSY]
        if full:
            print(f"First saturated in {work}: {runs[work, full[0]].found[0][2]}, "
                  f"from {full[0]} workers on.\n")
        else:
            print(f"Nothing is saturated in {work}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--measure", metavar="FILE", help="only measure, and save it in FILE")
    parser.add_argument("--load", metavar="FILE", help="do not measure, use what FILE has")
    parser.add_argument("--costs", default="", help="instead of measured ones; NAME=VALUE ..., ps")
    given = parser.parse_args()
    if given.load:
        with open(given.load, encoding="ascii") as file:
            saved = json.load(file)
    else:
        costs, real = measure(given.directory)
        saved = {"costs": costs, "real": [[*key, ns] for key, ns in real.items()]}
    if given.measure:
        with open(given.measure, "w", encoding="ascii") as file:
            json.dump(saved, file)
        return 0
    costs = saved["costs"]
    real = {(work, workers): ns for work, workers, ns in saved["real"]}
    costs["plain"] = fit_plain(given.directory, costs, real["fib", 1])
    print_costs(costs)
    print_errors(given.directory, costs, real)
    costs.update(costs_of(given.costs))
    print_prediction(simulate_all(given.directory, {
        (work, workers): (work, workers, costs) for work in OPERATIONS for workers in WORKERS}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
