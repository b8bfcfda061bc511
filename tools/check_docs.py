#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the Markdown of the tree: links lead to files, the glossary is in order.

usage: check_docs.py ROOT

In the glossary every term of a table stands once, in alphabetical order, with a file.
In docs/decisions every page is in the index and answers the same five questions.
In docs/questions.md every question has a path of at most three steps. Each step exists and leads to
the next: a page links to the next page, a section names the file, the file has the symbol.
"""
import os
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.M)
QUESTIONS = ["Decision", "Why", "Cost", "Think again when"]


def markdown(root):
    for name in sorted(os.listdir(root)):
        if name.endswith(".md"):
            yield os.path.join(root, name)
    for folder, _, names in sorted(os.walk(os.path.join(root, "docs"))):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def dead_links(path):
    text = CODE.sub("`", open(path, encoding="utf-8").read())
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not os.path.exists(os.path.join(os.path.dirname(path), target)):
            yield f"{path}: there is no {target}"


def glossary_faults(path):
    terms, seen = [], set()
    for line in open(path, encoding="utf-8"):
        if line.startswith("## "):
            terms = []
        row = re.match(r"\| (.+?) \| (.+) \| (.+) \|$", line)
        if not row or row.group(1) == "term":
            continue
        term = row.group(1).lower()
        if terms and term < terms[-1]:
            yield f"{path}: {term} stands after {terms[-1]}"
        if term in seen:
            yield f"{path}: {term} stands twice"
        if not LINK.search(row.group(3)):
            yield f"{path}: {term} names no file"
        terms.append(term)
        seen.add(term)
    if not seen:
        yield f"{path}: no term"


def decision_faults(folder):
    index = open(os.path.join(folder, "README.md"), encoding="utf-8").read()
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "README.md":
            continue
        text = open(path, encoding="utf-8").read()
        if f"({name})" not in index:
            yield f"{path}: is not in the index"
        if not re.search(r"^# .*\?$", text, re.M):
            yield f"{path}: its title is no question"
        for question in QUESTIONS:
            if f"**{question}.**" not in text:
                yield f"{path}: says nothing about: {question}"


STEP = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#([^)]*))?\)(?:: `(\w+)`)?")


def section(path, anchor):
    """The text of a page below the heading with this anchor; the whole page without an anchor."""
    text = open(path, encoding="utf-8").read()
    if not anchor:
        return text
    parts = re.split(r"^#+ (.*)$", text, flags=re.M)
    for title, body in zip(parts[1::2], parts[2::2]):
        if re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") == anchor:
            return body
    return ""


def defines(text, symbol):
    """Whether the file defines the function, on several lines or on one."""
    head = rf"^(?:\S.*\b)?{symbol}\("
    return re.search(rf"{head}(?:[^;]*|[^;{{}}]*\) \{{.*\}})$", text, re.M) is not None


def path_faults(folder, path):
    steps = [STEP.search(step) for step in path.split("→")]
    if not all(steps):
        return ["a step is no link"]
    if len(steps) > 3:
        return ["more than three steps"]
    faults = []
    places = [os.path.normpath(os.path.join(folder, step.group(1))) for step in steps]
    symbol = steps[-1].group(3)
    for step, place, following in zip(steps, places, places[1:] + [None]):
        if not os.path.exists(place):
            return [f"there is no {step.group(1)}"]
        text = section(place, step.group(2))
        name = os.path.basename(following) if following else None
        if following and name not in text and f"`{symbol}`" not in text:
            faults.append(f"{step.group(1)}#{step.group(2) or ''} does not name {name}")
        if not following and not defines(text, symbol):
            faults.append(f"{step.group(1)} does not define {symbol}")
    return faults


def question_faults(path):
    parts = re.split(r"^## (.*)$", open(path, encoding="utf-8").read(), flags=re.M)
    if len(parts) // 2 < 10:
        yield f"{path}: fewer than ten questions"
    for title, body in zip(parts[1::2], parts[2::2]):
        paths = re.findall(r"^(\[.*→.*)$", body, re.M)
        if not title.endswith("?") or len(paths) != 1:
            yield f"{path}: {title}: no question, or not one path"
        for fault in [fault for way in paths for fault in path_faults(os.path.dirname(path), way)]:
            yield f"{path}: {title}: {fault}"


def main():
    root = sys.argv[1]
    faults = [fault for path in markdown(root) for fault in dead_links(path)]
    faults += glossary_faults(os.path.join(root, "docs", "GLOSSARY.md"))
    decisions = os.path.join(root, "docs", "decisions")
    if os.path.isdir(decisions):
        faults += decision_faults(decisions)
    questions = os.path.join(root, "docs", "questions.md")
    if os.path.exists(questions):
        faults += question_faults(questions)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
