#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares docs/conformance.md with the list of requirements and with the tests.

usage: check_conformance.py ROOT
       check_conformance.py ROOT --follow REVISION

With --follow it first rewrites the rows whose tests got another sentence, or another file, since
that revision, and kept their body.

Every id of docs/requirements.txt has exactly one row, and no row has another id. The last column
of a row holds, separated by "; ", tests that a CMake file in tests/ runs, and what is missing:

    `task/budget_test`: a thousand yields cost nothing      a sentence of tests/task/budget_test.c
    `task/budget_test`: a thousand yields …                 the beginning of one
    not yet: compiler                                       what is missing, by area

A row with a sentence and an area is proved in part. A list may name tests, too: "- what: `test`:
sentence". In a C or C++ program a sentence is that of a
TEST, or one that the program prints as its result; in a script it is any text of the file.
"""
import collections
import difflib
import os
import re
import subprocess
import sys

AREAS = ("cluster", "io", "measure", "realtime")
PREFIX_MIN = 10
ID = r"(?:SCHED|CAP|NSM|G|R):\S+|C\d+"
ROW = re.compile(rf"\| ({ID}) \| (.+?) \| (.+) \|$")
ITEM = re.compile(r"- ([^`]+): (`[a-z0-9_/]+`: .+)$")
SPLIT = re.compile(r"; (?=`|not yet: )")
PROOF = re.compile(r"`([a-z0-9_/]+)`: (.+)$")
TEST = re.compile(r'^TEST\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.M)
TAP = re.compile(r'"[^"]* 1 - ([^"\\]+)\\n')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sentences(root, name):
    """("list", sentences) of a program, ("text", all of it) of a script, None: no such test."""
    for ending in (".c", ".cc"):
        path = os.path.join(root, "tests", name + ending)
        if os.path.exists(path):
            text = read(path)
            found = [re.findall(r'"((?:[^"\\]|\\.)*)"', test) for test in TEST.findall(text)]
            return "list", ["".join(parts) for parts in found] + TAP.findall(text)
    for ending in (".sh", ".py"):
        path = os.path.join(root, "tests", name + ending)
        if os.path.exists(path):
            return "text", read(path)
    return None


def registered(root, name):
    """Whether a CMake file in tests/ names the test, or makes its folder's tests in a loop."""
    parts = name.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts))]
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        for file in files:
            if file == "CMakeLists.txt" or file.endswith(".cmake"):
                text = read(os.path.join(folder, file))
                if name in text or any(above + "/${" in text for above in folders):
                    return True
    return False


def wrong_sentence(root, name, sentence):
    """None, or why no test of that name proves that sentence."""
    found = sentences(root, name)
    if found is None:
        return f"there is no test {name} in tests/"
    if not registered(root, name):
        return f"no CMake file in tests/ runs {name}"
    kind, known = found
    if kind == "text":
        return None if sentence in known else f"{name} does not contain: {sentence}"
    if not sentence.endswith("…"):
        if sentence in known:
            return None
        close = difflib.get_close_matches(sentence, known, 1)
        return f"{name} has no sentence: {sentence}" + "".join(f"\n  close: {c}" for c in close)
    start = sentence[:-1].rstrip()
    hits = [one for one in known if one.startswith(start)]
    if len(start) < PREFIX_MIN or len(hits) != 1:
        return f"{name}: {len(hits)} sentences begin so, one must, by {PREFIX_MIN} letters: {start}"
    return None


def check_proof(root, proof):
    """(proved, areas, complaints) of a row's last column."""
    proved, areas, complaints = False, [], []
    for part in SPLIT.split(proof):
        match = PROOF.match(part)
        if match:
            wrong = wrong_sentence(root, *match.groups())
            proved = True
            if wrong:
                complaints.append(wrong)
        elif part.startswith("not yet: ") and part[9:] in AREAS:
            areas.append(part[9:])
        else:
            complaints.append(f"neither `test`: sentence, nor not yet: {'|'.join(AREAS)}: {part}")
    return proved, areas, complaints


def summary(rows):
    """How many are proved, by whole and in part."""
    missing = collections.Counter(area for row in rows for area in row[1])
    whole = sum(1 for proved, areas in rows if proved and not areas)
    part = sum(1 for proved, areas in rows if proved and areas)
    by_area = ", ".join(f"{area} {count}" for area, count in sorted(missing.items()))
    return (f"{len(rows)}: {whole} proved, {part} in part, {len(rows) - whole - part} not yet"
            + (f" (missing: {by_area})" if missing else ""))


def check(root):
    """(what is wrong, what there is)"""
    lines = read(os.path.join(root, "docs", "requirements.txt")).split("\n")
    ids = [line.split()[0] for line in lines if line and not line.startswith("#")]
    complaints = [f"requirements.txt: {name}: twice" for name, count
                  in collections.Counter(ids).items() if count > 1]
    rows, seen = {}, collections.Counter()
    table = read(os.path.join(root, "docs", "conformance.md")).split("\n")
    for number, line in enumerate(table, 1):
        item = ITEM.match(line)
        if item:
            wrong = check_proof(root, item.group(2))[2]
            complaints += [f"conformance.md:{number}: {one}" for one in wrong]
        if not line.startswith("|") or line.startswith(("| id |", "|---")):
            continue
        match = ROW.match(line)
        if match is None:
            complaints.append(f"conformance.md:{number}: not a row: id, what holds, proved by")
            continue
        name, _, proof = match.groups()
        seen[name] += 1
        proved, areas, wrong = check_proof(root, proof)
        rows[name] = (proved, areas)
        complaints += [f"conformance.md:{number}: {name}: {one}" for one in wrong]
    complaints += [f"conformance.md: {name}: no row" for name in ids if not seen[name]]
    complaints += [f"conformance.md: {name}: {seen[name]} rows" for name in seen if seen[name] > 1]
    complaints += [f"conformance.md: {name}: not in requirements.txt" for name in seen
                   if name not in set(ids)]
    decisions = {name for name in rows if re.fullmatch(r"C\d+", name)}
    return complaints, [
        "requirements " + summary([rows[name] for name in rows if name not in decisions]),
        "decisions " + summary([rows[name] for name in decisions])]


def bodies(text):
    """The body of each TEST in a program's text, with its sentence."""
    for test in TEST.finditer(text):
        rest = text[test.end():]
        end = "\n" if rest.startswith(" {") else "\n}\n"
        yield rest[:rest.find(end)], "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', test.group(1)))


def places(files):
    """Where each body stands that stands at one place, of (path below tests/, text)."""
    found = collections.defaultdict(list)
    for path, text in files:
        for body, sentence in bodies(text):
            found[body].append((os.path.splitext(path)[0], sentence))
    return {body: where[0] for body, where in found.items() if len(where) == 1}


def follow(root, revision):
    """Rewrites the table, and tools/labels.txt, for tests that have other sentences or files than
    at that revision."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True,
                              encoding="utf-8").stdout

    def programs(listed):
        return [path for path in listed.split("\n") if path.endswith((".c", ".cc"))]
    before = programs(git("ls-tree", "-r", "--name-only", revision, "tests/"))
    then = places((path[6:], git("show", f"{revision}:{path}")) for path in before)
    after = programs(git("ls-files", "--cached", "--others", "--exclude-standard", "tests/"))
    now = places((path[6:], read(os.path.join(root, path))) for path in after
                 if os.path.exists(os.path.join(root, path)))
    moved = {where: now[body] for body, where in then.items() if now.get(body, where) != where}
    path = os.path.join(root, "docs", "conformance.md")
    table = read(path).split("\n")
    for number, line in enumerate(table):
        row = ROW.match(line) or ITEM.match(line)
        for part in SPLIT.split(row.group(row.lastindex)) if row else []:
            proof = PROOF.match(part)
            if proof and proof.groups() in moved:
                name, sentence = moved[proof.groups()]
                line = re.sub(re.escape(part) + r"(?=; `|; not yet: | \|$|$)",
                              lambda _: f"`{name}`: {sentence}", line)
        table[number] = line
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(table))
    follow_labels(root, moved)


def follow_labels(root, moved):
    """The same for the list of labels that a test alone shows."""
    path = os.path.join(root, "tools", "labels.txt")
    if not os.path.exists(path):
        return

    def renamed(entry):
        name, sentence = moved.get((entry.group(2), entry.group(4)), (None, None))
        if name is None:
            return entry.group(0)
        ending = ".c" if os.path.exists(os.path.join(root, "tests", name + ".c")) else ".cc"
        return f"{entry.group(1)}: tests/{name}{ending}: {sentence}"
    text = re.sub(r"^(\S+): tests/(\S+)(\.cc?): (.+)$", renamed, read(path), flags=re.M)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    if sys.argv[2:3] == ["--follow"]:
        follow(sys.argv[1], sys.argv[3])
    complaints, summaries = check(sys.argv[1])
    print("\n".join(summaries))
    sys.exit("\n".join(complaints) or None)


if __name__ == "__main__":
    main()
