#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs pages of documentation: compiles their programs, runs their commands, compares the output.

usage: check_guide.py PAGES JANUSRT COMPILER FLAG...

PAGES is one Markdown file, or a folder of them. Each page is checked in an empty directory:
  - A C block begins with its file name in a comment. It is written to that file. It has at most 40
    lines, so that a page stays a page.
  - A Janus block begins with its file name too: // NAME.jan. The same rules hold.
  - A console block is a sequence of commands, each after "$ ", and what they print. Commands run in
    the shell, in order. `cc` is COMPILER with all warnings as errors, `pkg-config` prints FLAGs and
    `janusrt` is JANUSRT. A line "[exit 1]" says that the command before ends with that code.
  - Numbers that an unrelated change of the library may move are not compared: ids of tasks, code
    addresses, and which schedule an exploration found. A command with JANUSRT_REPLAY gets the text
    that the exploration before it printed.
  - An archive of tools/sources.py that a command names lies in the directory.
  - If an archive cannot be had, or `janusrt cc` finds no clang with a plugin, the rest of the page
    is left out, and the result says so behind "# SKIP".
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

import sources

LINES_MAX = 40
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.M)
NAMES = {"c": re.compile(r"/\* (\w+\.[ch]) \*/\n"), "janus": re.compile(r"// (\w+\.jan)\n")}
REPLAY = re.compile(r"JANUSRT_REPLAY=(\S+)")
MOVING = [
    (re.compile(r"\b0x[0-9a-f]{9,}"), "ID"),
    (re.compile(r"\S+\+0x[0-9a-f]+(, )?"), ""),
    (re.compile(r"schedule \d+ failed"), "schedule N failed"),
    (re.compile(r"\d+ of its \d+ choices matter \(\d+ schedules? w\w+ tried\)"), "N matter"),
    (re.compile(r"step \d+: .*"), "step"),
    (re.compile(r"trace hash [0-9a-f]{16}"), "trace hash"),
    (re.compile(r"JANUSRT_REPLAY=\S+"), "JANUSRT_REPLAY"),
    (re.compile(r"\d+/s"), "N/s"),
    (re.compile(r"for \d+ ms, last on worker \d+"), "for N ms"),
]


PROGRESS = re.compile(r"janusrt: \d+ schedules, \d+/s, nothing found$")


def comparable(lines):
    """An exploration that takes long tells its progress: only its last line counts."""
    lines = [line for number, line in enumerate(lines, 1)
             if number == len(lines) or not PROGRESS.match(line)]
    for pattern, put in MOVING:
        lines = [pattern.sub(put, line) for line in lines]
    lines = [line.rstrip() for line in lines]
    # How many choices matter depends on the schedule that was found: one line stands for all.
    return [line for number, line in enumerate(lines)
            if line.strip() != "step" or number == 0 or lines[number - 1].strip() != "step"]


def make_tools(folder, janusrt, compiler, flags):
    warnings = "-std=c11 -pedantic -Wall -Wextra -Werror"
    scripts = {
        "cc": f'exec {compiler} {warnings} "$@"',
        "pkg-config": f"echo '{' '.join(flags)}'",
        "janusrt": f'exec {janusrt} "$@"',
    }
    for name, command in scripts.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\n{command}\n")
        os.chmod(path, 0o755)


def commands(block):
    """(command, lines that it prints)"""
    found = []
    for line in block.split("\n")[:-1]:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            sys.exit(f"a console block begins without a command: {line}")
        else:
            found[-1][1].append(line)
    return found


def run_command(page, command, wanted, folder, tools, replay):
    if replay:
        command = REPLAY.sub(lambda _: f"JANUSRT_REPLAY={replay}", command)
    run = subprocess.run(
        ["stdbuf", "-oL", "sh", "-c", command],  # lines in the order of a terminal
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}, text=True, timeout=600,
        check=False)
    printed = run.stdout.split("\n")[:-1] if run.stdout else []
    if run.returncode != 0:
        printed.append(f"[exit {run.returncode}]")
    if comparable(printed) != comparable(wanted):
        print("\n".join(difflib.unified_diff(wanted, printed, f"{page} shows", "it prints",
                                             lineterm="")))
        sys.exit(f"{page}: `{command}` prints something else")
    found = REPLAY.search(run.stdout)
    return found.group(1) if found else replay


def obstacle(command, folder, tools):
    """None, or why this machine cannot run the command. Fetches what it needs."""
    for name, (place, _, _) in sources.ARCHIVES.items():
        archive = os.path.basename(place)
        if archive in command and not os.path.exists(os.path.join(folder, archive)):
            try:
                os.symlink(sources.archive_of(name), os.path.join(folder, archive))
            except sources.Missing as error:
                return str(error)
    if "janusrt cc" in command:
        asked = subprocess.run([os.path.join(tools, "janusrt"), "cc", "--print", "-c", "a.c"],
                               capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            return asked.stderr.strip()
    return None


def check_page(page, tools):
    """(how many programs, why the rest was left out or None)"""
    text = open(page, encoding="utf-8").read()
    replay, programs = "", 0
    with tempfile.TemporaryDirectory() as folder:
        for language, block in BLOCK.findall(text):
            if language in NAMES:
                name = NAMES[language].match(block)
                if not name:
                    sys.exit(f"{page}: a block of {language} does not begin with its file name")
                if block.count("\n") > LINES_MAX + 1:
                    sys.exit(f"{page}: {name.group(1)} has more than {LINES_MAX} lines")
                with open(os.path.join(folder, name.group(1)), "w", encoding="utf-8") as source:
                    source.write(block)
                programs += 1
            elif language == "console":
                for command, wanted in commands(block):
                    why = obstacle(command, folder, tools)
                    if why:
                        return programs, f"from `{command}` on: {why}"
                    replay = run_command(page, command, wanted, folder, tools, replay)
            else:
                sys.exit(f"{page}: a block is neither c, janus nor console")
    return programs, None


def main():
    place, janusrt, compiler, flags = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    folder = place if os.path.isdir(place) else os.path.dirname(place)
    pages = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    if not os.path.isdir(place):
        pages = [os.path.basename(place)]
    if not pages:
        sys.exit(f"{folder}: no page")
    with tempfile.TemporaryDirectory() as tools:
        make_tools(tools, janusrt, compiler, flags)
        for number, name in enumerate(pages, 1):
            programs, left_out = check_page(os.path.join(folder, name), tools)
            if not programs and (name != "README.md" or len(pages) == 1):
                sys.exit(f"{name}: no program")
            note = f" # SKIP {left_out}" if left_out else ""
            print(f"ok {number} - {name}: {programs} programs{note}", flush=True)


if __name__ == "__main__":
    main()
