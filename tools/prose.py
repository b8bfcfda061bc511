#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the English of documents, man pages, comments and the sentences of tests.

usage: prose.py [ROOT]            compare every file with its count in tools/prose.txt
       prose.py --list FILE...    print every fault of these files
       prose.py --write [ROOT]    lower the counts in tools/prose.txt to what is left

A fault is a sentence of more than 25 words, a sentence with more than one of ";" and ":", or a
phrase of PHRASES. tools/prose.txt lists the files that still have faults, and how many. A count
never rises: a file with more faults than its count fails the check, and so does a new file with
any fault.
"""
import os
import re
import sys

WORDS_MAX = 25
COUNTS = "tools/prose.txt"
FOLDERS = {"": ".md", "docs": ".md", "docs/guide": ".md", "docs/decisions": ".md",
           "docs/http": ".md", "docs/man": ".scd", "include/janusrt": ".h", "examples": ".c"}
TREES = ["src", "http", "tls", "cmd", "bench", "tests"]  # all their C files
GENERATED = {"CHANGELOG.md", "docs/conformance.md", "docs/costs.md"}  # the first is history

# Word order and idiom of another language, subjects without a noun, verbs without an object.
PHRASES = [
    (re.compile(r"\b(lest|dear|dearer|whoever|whomever|whosoever|whom)\b", re.I),
     "use plain English"),
    (re.compile(r"\b(such a one|all the same|so many|so much|so long(?! as)|of which|in vain)\b",
                re.I), "rephrase"),
    (re.compile(r"(?<!people )(?<!programmers )(?<!users )(?<!readers )\bwho\b", re.I),
     "name the actor: the task, the thread, the caller"),
    (re.compile(r"\b(is|are|was|were|be|been) (told|said)\b", re.I), "name who reports what"),
    (re.compile(r"\b(is|are) none\b", re.I), "say what does not exist"),
    (re.compile(r"\bone (?:that|which)\b", re.I), "name the thing"),
    (re.compile(r"^(The same(?=[,.;:]| for\b| of\b)|As above|Likewise|So does|Nor does)", re.I),
     "a comment stands alone: do not point to the one before"),
]
# A colon after a value ("0: the default") or after the order of an atomic packs no two thoughts.
VALUE = re.compile(r'(?:\b(?:\d+|[A-Z_0-9]{2,}|true|false|True|False|in|out)|""):(?= )')
ORDER = re.compile(r"^(relaxed|acquire|release|acq_rel|seq_cst)(, both|, all)?:(?= )")
ANSWERS = re.compile(r"\b(Context|Yields|Owns|Cost|Errors):")


def units_of_markdown(text):
    """(line number, paragraph, list item or table cell)"""
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
    fenced, start, parts, found = False, 0, [], []

    def flush():
        if parts:
            found.append((start, " ".join(parts)))
            parts.clear()

    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
            flush()
            continue
        if fenced or not line.strip() or (line.startswith("    ") and not parts):
            flush()
            continue
        if line.startswith("|"):
            flush()
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
            found.extend((number, cell) for cell in cells if cell)
            continue
        if re.match(r"#|!\[", line):
            flush()
            continue
        if re.match(r"\s*([-*]|\d+\.) ", line):
            flush()
            line = re.sub(r"^\s*([-*]|\d+\.) ", "", line)
        if not parts:
            start = number
        parts.append(line.strip())
    flush()
    return found


def units_of_man(text):
    found, parts, start, code = [], [], 0, False
    for number, line in enumerate(text.split("\n"), 1):
        line = line.replace("\t", " ")
        if line.strip() == "```":
            code = not code
        if code or not line.strip() or re.match(r"[#;`]| *[|\]:]|janus", line):
            if parts:
                found.append((start, " ".join(parts)))
            parts = []
            continue
        if re.match(r" *(-|\*[^*]+\*$)", line):
            if parts:
                found.append((start, " ".join(parts)))
            parts = []
            if not line.strip().startswith("-"):
                continue
        if not parts:
            start = number
        parts.append(re.sub(r"[*_](\w[^*_\s]*)[*_]", r"\1", line.replace("\\", "").strip(" -")))
    if parts:
        found.append((start, " ".join(parts)))
    return found


def units_of_comments(text):
    """Paragraphs of comments, and the answers to the five questions. Indented code is not prose."""
    found = []
    for comment in re.finditer(r"/\*(.*?)\*/", text, re.S):
        if "SPDX" in comment.group() or comment.group(1).startswith(" Prints:"):
            continue
        number = text.count("\n", 0, comment.start()) + 1
        parts, start, answers = [], number, False
        for offset, line in enumerate(comment.group(1).split("\n")):
            line = re.sub(r"^\s*\*? ?", "", line, count=1) if offset else line.strip()
            answers = bool(line.strip()) and (answers or bool(ANSWERS.match(line)))
            code = not answers and (line.startswith("   ") or re.search(r"\S {3,}\S", line))
            item = re.match(r"\s*- ", line) or re.match(r"(\w+:)? +[A-Z_, …]+ {2,}\S", line)
            item = item or re.match(r" {9}(and|On) ", line) or ANSWERS.match(line)
            if parts and (code or item or not line.strip()):
                found.append((start, " ".join(parts)))
                parts = []
            if code or not line.strip():
                continue
            if not parts:
                start = number + offset
            parts.append(line.strip(" -"))
        if parts:
            found.append((start, " ".join(parts)))
    for test in re.finditer(r'^TEST\w*\("((?:[^"\\]|\\.|"\s*")*)"', text, re.M):
        found.append((text.count("\n", 0, test.start()) + 1, re.sub(r'"\s*"', "", test.group(1))))
    return found


def sentences(unit):
    unit = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", unit)
    unit = re.sub(r"`[^`]*`", "X", unit)
    unit = re.sub(r"\b(e\.g|i\.e|etc|vs)\.", r"\1", unit)
    unit = unit.replace("...", "…").replace("**", "").replace("::", "")
    for part in re.split(r"(?<=[.?!])[)*\"]*\s+", unit):
        for answer in ANSWERS.split(part)[::2] if ANSWERS.search(part) else [part]:
            answer = answer.strip(" |")
            if answer:
                yield answer


def faults_of(sentence):
    count = sum(1 for word in sentence.split() if re.search(r"\w", word))
    if count > WORDS_MAX:
        yield f"{count} words"
    packed = ORDER.sub("", VALUE.sub("", sentence))
    if len(re.findall(r"[;:](?=\s)", packed)) > 1:
        yield "more than one of ; and :"
    question = sentence.rstrip('")').endswith("?")
    for pattern, advice in PHRASES:
        found = pattern.search(sentence)
        if found and not (question and found.group().lower() == "who"):
            yield f'"{found.group()}": {advice}'


def check(path):
    text = open(path, encoding="utf-8").read()
    split = {".md": units_of_markdown, ".scd": units_of_man}.get(os.path.splitext(path)[1],
                                                                units_of_comments)
    for number, unit in split(text):
        for sentence in sentences(unit):
            for fault in faults_of(sentence):
                yield number, fault, sentence


def files(root):
    for folder, ending in FOLDERS.items():
        if not os.path.isdir(os.path.join(root, folder)):
            continue
        for name in sorted(os.listdir(os.path.join(root, folder))):
            path = os.path.join(folder, name) if folder else name
            if name.endswith(ending) and path not in GENERATED:
                yield path
    for tree in TREES:
        for folder, _, names in sorted(os.walk(os.path.join(root, tree))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read_counts(root):
    counts = {}
    path = os.path.join(root, COUNTS)
    for line in open(path, encoding="utf-8") if os.path.exists(path) else []:
        if line.strip() and not line.startswith("#"):
            name, count = line.split()
            counts[name] = int(count)
    return counts


def compare(root):
    counts, bad = read_counts(root), False
    for path in files(root):
        faults = list(check(os.path.join(root, path)))
        allowed = counts.get(path, 0)
        if len(faults) > allowed:
            bad = True
            print(f"{path}: {len(faults)} faults, {allowed} allowed; tools/prose.py --list {path}")
            for number, fault, sentence in faults[:20]:
                print(f"  {path}:{number}: {fault}: {sentence[:90]}")
    for path in counts.keys() - set(files(root)):
        bad = True
        print(f"{COUNTS} names {path}, which does not exist")
    if not bad:
        print(f"ok 1 - the prose has at most {sum(counts.values())} faults")
    return bad


def write(root):
    counts = read_counts(root)
    new = not os.path.exists(os.path.join(root, COUNTS))
    with open(os.path.join(root, COUNTS), "w", encoding="utf-8") as out:
        out.write("# SPDX-License-Identifier: MIT\n"
                  "# Faults that tools/prose.py still finds, by file. Counts only fall: "
                  "tools/prose.py --write.\n")
        for path in files(root):
            count = sum(1 for _ in check(os.path.join(root, path)))
            count = count if new else min(count, counts.get(path, 0))
            if count:
                out.write(f"{path} {count}\n")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--list"]:
        for path in arguments[1:]:
            for number, fault, sentence in check(path):
                print(f"{path}:{number}: {fault}: {sentence}")
        return
    if arguments[:1] == ["--write"]:
        write(arguments[1] if len(arguments) > 1 else ".")
        return
    sys.exit(1 if compare(arguments[0] if arguments else ".") else 0)


if __name__ == "__main__":
    main()
