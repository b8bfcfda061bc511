#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What counting costs: kernels with the pass beside the same kernels without it, at -O2.

usage: race.py PLUGINS [--majors 19,14] [--rounds N] [--words a;b] [--size] [kernel...]

All builds of a kernel run in turn in one process. Each column is the ratio of minima and, behind a
slash, the median ratio. --words adds builds with these words for the pass. --size also prints the
growth of the text.
"""
import argparse
import math
import os
import pathlib
import subprocess
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = TREE / "tests" / "cc"


def compile_kernel(options, folder, kernel, major, name, words, extra=()):
    output = folder / f"{kernel}.{name}.o"
    plugin = []
    if words is not None:
        plugin = [f"-fpass-plugin={options.plugins}/janusrt_ops_{major}.so"]
    subprocess.run([f"clang-{major}", "-O2", "-w", *plugin, *extra, f"-Dkernel=kernel_{name}", "-c",
                    TESTS / "kernels" / f"{kernel}.c", "-o", output], check=True,
                   env={**os.environ, "JANUSRT_OPS": words or ""})
    return output


def text_bytes(path):
    done = subprocess.run(["size", path], check=True, capture_output=True, text=True)
    return int(done.stdout.split("\n")[1].split()[0])


def race(options, folder, kernel, major, variants):
    names = ["plain"] + [f"ops{i}" for i in range(len(variants))]
    objects = [compile_kernel(options, folder, kernel, major, name, words)
               for name, words in zip(names, [None, *variants])]
    program = folder / f"{kernel}.race"
    listed = " ".join(f"X({name})" for name in names)
    subprocess.run([f"clang-{major}", "-O1", f"-I{TESTS}", f"-DRACE_BUILDS={listed}",
                    TREE / "bench/cc/race.c", TESTS / "counting.c", *objects, "-lm", "-o", program],
                   check=True)
    done = subprocess.run([program, str(options.rounds)], check=True, capture_output=True,
                          text=True)
    rows = [line.split() for line in done.stdout.strip().split("\n")]
    sizes = [text_bytes(path) for path in objects]
    return ([(float(row[2]), float(row[3])) for row in rows[1:]], float(rows[0][1]),
            [size / sizes[0] for size in sizes[1:]])


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plugins")
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--majors", default="19")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--words", default="")
    parser.add_argument("--size", action="store_true")
    options = parser.parse_intermixed_args()
    variants = ["", *[word for word in options.words.split(";") if word]]
    kernels = options.kernels or sorted(path.stem for path in (TESTS / "kernels").glob("*.c"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="janusrt-race-"))
    for major in map(int, options.majors.split(",")):
        print(f"clang {major}: kernel, ms, minima/medians of {variants}")
        all_rows = {}
        for kernel in kernels:
            ratios, ms, sizes = race(options, folder, kernel, major, variants)
            all_rows[kernel] = ratios, sizes
            cells = "  ".join(f"{a:.3f}/{b:.3f}" for a, b in ratios)
            if options.size:
                cells += "  text " + " ".join(f"{size:.2f}" for size in sizes)
            print(f"{kernel:12} {ms:8.1f}  {cells}", flush=True)
        for title, chosen in (("geomean", kernels), ("without fib", set(kernels) - {"fib"})):
            if not chosen:
                continue
            cells = "  ".join(
                "/".join(f"{geomean([all_rows[k][0][i][which] for k in chosen]):.3f}"
                         for which in (0, 1)) for i in range(len(variants)))
            print(f"{title:12} {'':8}  {cells}")


if __name__ == "__main__":
    main()
