#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions of the hot paths, counted by callgrind, beside their budgets.

    cost_test.py PROGRAM STRIP BUILD      PROGRAM is cost_paths; BUILD says what it was made with

A path that takes more than its budget by over 5 % fails. On a busy machine too, two runs differ by
0.2 % at most, and most counts not at all; so nothing is tried twice. COST_WRITE=1 writes what was
found to budget.txt.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

BUDGET = pathlib.Path(__file__).resolve().parent / "budget.txt"
ALLOWED = 1.05
SECONDS_MAX = 600
LINE = re.compile(r"(\w+) +([0-9.]+)( .*)?$")


class Broken(Exception):
    """The measurement itself failed."""


def skip(why):
    print(f"ok 1 - cost/cost_test # SKIP {why}")
    sys.exit(77)


def read_budget(text):
    """(what build it is for, instructions by path)"""
    build = re.search(r"^# for: (.*)$", text, re.MULTILINE)
    lines = [LINE.match(line) for line in text.split("\n") if line and not line.startswith("#")]
    if build is None or None in lines:
        raise Broken("budget.txt: a line says neither what it is for nor a path and a number")
    return build.group(1), {line.group(1): float(line.group(2)) for line in lines}


def write_budget(text, build, found):
    """The same text with other numbers; paths it does not have yet come last."""
    def line(path, comment):
        return f"{path:<10} {found[path]:>8.1f}{comment}"
    out, known = [], set()
    for old in text.rstrip("\n").split("\n"):
        match = LINE.match(old)
        if match is None or old.startswith("#"):
            out.append(f"# for: {build}" if old.startswith("# for:") else old)
        elif match.group(1) in found:
            known.add(match.group(1))
            out.append(line(match.group(1), match.group(3) or ""))
    out += [line(path, "  # ?") for path in found if path not in known]
    return "\n".join(out) + "\n"


def walk(program, strip, folder):
    """Lets callgrind count. Neither the caller's environment nor its .valgrindrc has a say; debug
    information would only be read."""
    stripped = folder / "cost_paths"
    subprocess.run([strip, "--strip-debug", "-o", str(stripped), program], check=True)
    done = subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes",
         f"--callgrind-out-file={folder}/out", str(stripped)],
        cwd=folder, env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder)},
        capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise Broken(f"cost_paths ended with {done.returncode}\n{done.stdout}{done.stderr}")


def counted(folder):
    """Instructions for one operation, by path, from the dumps of a small and a large walk."""
    walks = {}
    for dump in folder.glob("out.*"):
        text = dump.read_text(errors="replace")
        label = re.search(r"^desc: Trigger: Client Request: (\w+) (\d+)$", text, re.MULTILINE)
        total = re.search(r"^summary: (\d+)", text, re.MULTILINE)
        part = re.search(r"^part: (\d+)$", text, re.MULTILINE)
        if label and total and part:
            walks.setdefault(label.group(1), []).append(
                (int(part.group(1)), int(label.group(2)), int(total.group(1))))
    costs = {}
    for path, both in sorted(walks.items(), key=lambda item: min(item[1])):
        if len(both) != 2:
            raise Broken(f"{path}: {len(both)} dumps, want 2")
        (_, small, before), (_, large, after) = sorted(both)
        costs[path] = (after - before) / (large - small)
    return costs


def judge(path, budget, found):
    """(it is within its budget, what is to be said)"""
    if found is None:
        return False, f"{path} has a budget, but cost_paths does not walk it"
    if budget is None:
        return False, f"{path} takes {found:.1f} instructions and has no budget"
    said = f"{path} takes {found:.1f} instructions, budget {budget:.1f}"
    return found <= budget * ALLOWED, said


def report(budgets, costs):
    """Prints TAP; whether all are within their budgets."""
    paths = list(budgets) + [path for path in costs if path not in budgets]
    good, low = True, []
    print(f"1..{len(paths)}")
    for number, path in enumerate(paths, 1):
        budget, found = budgets.get(path), costs.get(path)
        ok, said = judge(path, budget, found)
        print(f"{'ok' if ok else 'not ok'} {number} - {said}")
        if not ok and budget and found:
            print(f"# {path}: {100 * (found / budget - 1):+.1f} %, 5 are allowed")
        if budget and found and found * ALLOWED < budget:
            low.append(path)
        good = good and ok
    if not good:
        print("# If it is worth it: COST_WRITE=1 ctest -R cost/ writes the new numbers to "
              "tests/cost/budget.txt.")
        print("# Where they go: HACKING.md, Instruction budgets.")
    if low:
        print(f"# cheaper than their budgets by over 5 %: {' '.join(low)}. COST_WRITE=1 keeps it.")
    return good


def main(program, strip, build):
    build += ", " + " ".join(platform.libc_ver())  # some of its instructions are counted too
    text = BUDGET.read_text()
    wanted, budgets = read_budget(text)
    writing = os.environ.get("COST_WRITE") == "1"
    if build != wanted and not writing:
        skip(f"the budgets are for {wanted}, this is {build}")
    if shutil.which("valgrind") is None:
        skip("no valgrind here")
    works = subprocess.run(["valgrind", "-q", "--tool=callgrind",
                            "--callgrind-out-file=/dev/null", "true"],
                           capture_output=True, check=False)
    if works.returncode != 0:
        skip("this valgrind cannot run programs")
    with tempfile.TemporaryDirectory() as name:
        walk(program, strip, pathlib.Path(name))
        costs = counted(pathlib.Path(name))
    if not costs:
        raise Broken("callgrind has counted nothing")
    if writing:
        text = write_budget(text, build, costs)
        BUDGET.write_text(text)
        _, budgets = read_budget(text)
    return 0 if report(budgets, costs) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:4]))
    except (Broken, subprocess.SubprocessError) as error:
        print("not ok 1 - the hot paths can be counted")
        print("\n".join(f"# {line}" for line in str(error).split("\n")))
        sys.exit(1)
