#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tools/prose.py on small trees: what it finds, what it ignores, that counts never rise."""
import os
import subprocess
import sys
import tempfile

TOOL = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "prose.py")
LONG = " ".join(["word"] * 26) + "."
count = 0


def prose(root, *arguments):
    return subprocess.run([sys.executable, TOOL, *arguments, root], capture_output=True, text=True,
                          check=False)


def expect(sentence, path, text, faults):
    """A tree with one file fails with these words in its output, or passes."""
    global count
    count += 1
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as out:
            out.write(text)
        run = prose(root)
    good = run.returncode == (1 if faults else 0) and all(part in run.stdout for part in faults)
    print(f"{'ok' if good else 'not ok'} {count} - {sentence}")
    if not good:
        sys.exit(run.stdout + run.stderr)


def counts_only_fall():
    global count
    count += 1
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "tools"))
        page, counts = os.path.join(root, "A.md"), os.path.join(root, "tools", "prose.txt")
        steps = []
        for text, allowed, command in [(LONG, "A.md 1", []), (LONG + "\n\n" + LONG, "A.md 1", []),
                                       (LONG + "\n\n" + LONG, "A.md 1", ["--write"]),
                                       ("Short.", "A.md 1", ["--write"])]:
            open(page, "w", encoding="utf-8").write(text)
            open(counts, "w", encoding="utf-8").write(allowed + "\n")
            run = prose(root, *command)
            steps.append((run.returncode, "A.md 1" in open(counts, encoding="utf-8").read()))
    good = steps == [(0, True), (1, True), (0, True), (0, False)]
    print(f"{'ok' if good else 'not ok'} {count} - writing lowers a count and never raises it")
    if not good:
        sys.exit(str(steps))


def main():
    expect("a sentence of 26 words is a fault", "A.md", LONG, ["26 words"])
    expect("a sentence of 25 words is none", "A.md", LONG.replace("word word", "word", 1), [])
    expect("a code block is not prose", "A.md", f"```c\n{LONG}\n```\n", [])
    expect("each cell of a table is by itself", "A.md", f"| {LONG[:60]} | {LONG[:60]} |\n", [])
    expect("who without a noun is a fault", "A.md", "It says who came.", ["name the actor"])
    expect("a question may begin with who", "A.md", "Who frees it?", [])
    expect("two semicolons are a fault", "A.md", "A task; a task; a task.", ["more than one"])
    expect("a comment of a header is prose", "include/janusrt/a.h", f"/* {LONG} */\n", ["26 words"])
    expect("the five answers are sentences of their own", "include/janusrt/a.h",
           f"/*\n * Context: {LONG[:60]}. Yields: no. Owns: {LONG[:70]}.\n */\n", [])
    expect("code of a header is not prose", "include/janusrt/a.h",
           f"/*\n * Short.\n *\n *     {LONG}\n */\nint {LONG}\n", [])
    expect("a paragraph of a man page is prose", "docs/man/a.scd", f"# NAME\n\n{LONG}\n",
           ["26 words"])
    counts_only_fall()


if __name__ == "__main__":
    main()
