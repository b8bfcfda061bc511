#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs an example and compares what it prints with the `Prints:` comment at its end.

usage: check_example.py SOURCE COMMAND...
"""
import re
import subprocess
import sys


def expected(path):
    text = open(path, encoding="utf-8").read()
    found = re.search(r"/\* Prints:\n(.*?)\n? \*/\s*\Z", text, re.DOTALL)
    if not found:
        sys.exit(f"{path}: ends without a `Prints:` comment")
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in found.group(1).split("\n")]


def main():
    source, command = sys.argv[1], sys.argv[2:]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    printed = [line.rstrip() for line in run.stdout.rstrip("\n").split("\n")]
    wanted = expected(source)
    for line in printed:
        print(line)
    if run.returncode != 0:
        sys.exit(f"{source}: exit code {run.returncode}")
    if printed != wanted:
        lines = ["prints:"] + printed + ["but says:"] + wanted
        sys.exit(f"{source} " + "\n  ".join(lines))


if __name__ == "__main__":
    main()
