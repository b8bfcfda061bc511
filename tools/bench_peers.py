#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the peers of the race. Usage: tools/bench_peers.py BUILD

BUILD is the folder of CMake. A peer that is installed may still not build, for example because its
compiler is another version. Such a peer is left out of the race: this script removes what an
earlier build has left of it, and writes BUILD/bench/unbuilt.json, {program: why}. tools/bench.py
reads it and prints a line for each. The whole output of the builds is in BUILD/bench/peers.log.

Always ends with 0, because the race goes on without a peer.
"""

import json
import pathlib
import re
import subprocess
import sys


def build(folder, targets, log):
    """What the build printed if it failed, else None."""
    done = subprocess.run(["cmake", "--build", str(folder), "--target", *targets, "--", "-k", "0"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    log.write(done.stdout)
    return None if done.returncode == 0 else done.stdout


def reason(text):
    """The first line that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"\berror\b|cannot|not found", line, re.I)]
    return (wrong or lines or ["no output"])[0][:160]


def build_all(folder, listed, log):
    """{program: why it was not built}"""
    made = dict(zip(listed["targets"], listed["peers"]))
    if not made or build(folder, list(made), log) is None:
        return {}
    unbuilt = {}
    for target, program in made.items():
        said = build(folder, [target], log)
        if said is None:
            continue
        unbuilt[program] = reason(said)
        pathlib.Path(program).unlink(missing_ok=True)
    return unbuilt


def main(folder):
    bench = pathlib.Path(folder) / "bench"
    listed = json.loads((bench / "programs.json").read_text())
    with (bench / "peers.log").open("w") as log:
        unbuilt = build_all(folder, listed, log)
    (bench / "unbuilt.json").write_text(json.dumps(unbuilt, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_peers.py BUILD")
    main(sys.argv[1])
