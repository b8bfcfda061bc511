#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the Markdown of the tree: links lead to files, the glossary is in order.

usage: check_docs.py ROOT

In the glossary every term of a table stands once, in alphabetical order, with a file.
In docs/decisions every page is in the index and answers the same five questions.
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


def main():
    root = sys.argv[1]
    faults = [fault for path in markdown(root) for fault in dead_links(path)]
    faults += glossary_faults(os.path.join(root, "docs", "GLOSSARY.md"))
    decisions = os.path.join(root, "docs", "decisions")
    if os.path.isdir(decisions):
        faults += decision_faults(decisions)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
