#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what stands behind the labels of the essays in src/.

Usage: tools/labels.py [root] [--list]

A label such as [turn-epoch] names what an essay promises. One of these stands behind it:

    asserted   jrt_invariant("label", ...) in all builds, jrt_debug_invariant("label", ...) in debug
               builds, or a jrt_die("invariant [label] broken", ...); or a jrt_demand or
               _Static_assert that names [label] in its text or in a comment on its lines
    modelled   a model (models/*.pml, tests/*/*_model.c) names it in a paragraph that begins with
               "checks:"
    listed     tools/labels.txt says why neither is possible: the label is a choice of the design,
               or a test's sentence shows it

The script prints the counts. It fails on a label that is cited and not defined, defined twice, or
without anything behind it. The list may only shrink: its first entry is the number of the others.
--list prints each label with its place and what stands behind it.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy  # noqa: E402

LISTING = "tools/labels.txt"
ASSERTION = re.compile(r'\bjrt_(?:debug_)?invariant\(\s*"([^"]+)"')
DIRECT = re.compile(r'"invariant \[([^\]"]+)\] broken"')
STATEMENT = re.compile(r"\b(?:jrt_demand|_Static_assert)\(")
CITED = re.compile(tidy.LABEL + r"(?!\()")  # [text](address) is a link


def is_model(path):
    return path.endswith(".pml") or re.search(r"^tests/.*_model\.c$", path) is not None


def checked_labels(text):
    """The labels in the paragraphs of a model that begin with "checks:"."""
    for paragraph in re.findall(r"\bchecks:(.*?)(?:\n[ *]*\n|\*/|\Z)", text, re.S):
        yield from re.findall(tidy.LABEL, paragraph)


def sentences(text):
    """The names of the tests in a file, each in one piece."""
    for match in re.finditer(r'\bTEST\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)\)', text):
        yield "".join(re.findall(r'"((?:\\.|[^"\\])*)"', match.group(1)))


def named_in_statements(source):
    """(line, label) for the labels that demands and static assertions name on their lines."""
    for start, code in enumerate(source.code):
        if STATEMENT.search(code) is None or code.lstrip().startswith("#"):
            continue
        end = start
        while ";" not in source.code[end] and end + 1 < len(source.code):
            end += 1
        for label in CITED.findall("\n".join(source.lines[start:end + 1])):
            yield start + 1, label


FOLDERS = ("src", "http", "tls", "include", "models", "tests", "docs", "cmd")


class Labels:
    """What a tree says about its labels; `wrong` collects (path, line, message)."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.defined, self.asserted, self.modelled, self.listed = {}, {}, {}, {}
        self.wrong = []
        cited = {}
        for path in tidy.list_files(self.root):
            if path.split("/")[0] not in FOLDERS:
                continue
            if path.endswith((".py", ".sh", ".txt", ".json", ".svg", ".S")):
                continue
            source = tidy.Source(self.root, path)
            self.read_code(source, cited)
            if is_model(path):
                for label in checked_labels(source.text):
                    self.modelled.setdefault(label, path)
            for number, line in enumerate(source.comment if source.is_c else source.lines, 1):
                for label in CITED.findall(line):
                    cited.setdefault(label, (path, number))
        for label, (path, number) in cited.items():
            if label not in self.defined:
                self.wrong.append((path, number, f"[{label}] is cited and nowhere defined"))
        self.read_listing()
        self.compare()

    def read_code(self, source, cited):
        if not source.is_c or source.top not in ("src", "include"):
            return
        for number, label in tidy.defined_labels(source):
            if label in self.defined:
                self.wrong.append((source.path, number, "[{}] is already defined at {}:{}".format(
                    label, *self.defined[label])))
            self.defined.setdefault(label, (source.path, number))
        code = "\n".join(source.code)
        for match in list(ASSERTION.finditer(code)) + list(DIRECT.finditer(code)):
            place = (source.path, code.count("\n", 0, match.start()) + 1)
            self.asserted.setdefault(match.group(1), place)
            cited.setdefault(match.group(1), place)
        for number, label in named_in_statements(source):
            self.asserted.setdefault(label, (source.path, number))
            cited.setdefault(label, (source.path, number))

    def read_listing(self):
        if not (self.root / LISTING).is_file():
            return
        count = None
        for number, line in enumerate((self.root / LISTING).read_text().split("\n"), 1):
            if not line or line.startswith("#"):
                continue
            name, _, reason = (part.strip() for part in line.partition(": "))
            if name == "entries" and reason.isdigit():
                count = int(reason)
            elif name in self.listed:
                self.wrong.append((LISTING, number, f"{name} is listed twice"))
            else:
                self.listed[name] = (number, reason)
                self.judge(number, name, reason)
        if count != len(self.listed):
            self.wrong.append((LISTING, 0, f"{len(self.listed)} entries, and the head says {count}:"
                               " entries may only go; lower the number with each"))

    def judge(self, number, name, reason):
        """A reason is "a choice: ..." or "tests/file: sentence"."""
        where, _, what = (part.strip() for part in reason.partition(": "))
        if not what:
            self.wrong.append((LISTING, number, f"{name}: give a reason, or a test and sentence"))
        elif where.startswith("tests/"):
            path = self.root / where
            if not path.is_file():
                self.wrong.append((LISTING, number, f"{name}: there is no {where}"))
            elif what not in sentences(path.read_text()):
                self.wrong.append((LISTING, number, f"{name}: {where} has no test \"{what}\""))
        elif where != "a choice":
            self.wrong.append((LISTING, number, f'{name}: say "a choice: why", or name a test'))

    def compare(self):
        for label, (path, number) in self.defined.items():
            if not any(label in kind for kind in (self.asserted, self.modelled, self.listed)):
                self.wrong.append((path, number, f"[{label}] is neither asserted nor modelled, and "
                                   f"{LISTING} does not say why"))
        for label, (number, _) in self.listed.items():
            if label not in self.defined:
                self.wrong.append((LISTING, number, f"[{label}] is nowhere defined"))
            elif label in self.asserted or label in self.modelled:
                self.wrong.append((LISTING, number, f"[{label}] is asserted or modelled: take it "
                                   "off the list"))

    def behind(self, label):
        if label in self.asserted:
            return "asserted {}:{}".format(*self.asserted[label])
        if label in self.modelled:
            return f"modelled {self.modelled[label]}"
        return f"listed {self.listed[label][1]}" if label in self.listed else "nothing"

    def counts(self):
        defined = self.defined.keys()
        proved = self.asserted.keys() | self.modelled.keys()
        shown = [label for label, (_, reason) in self.listed.items() if reason.startswith("tests/")]
        return {"defined": len(defined),
                "asserted": len(defined & self.asserted.keys()),
                "modelled": len(defined & self.modelled.keys()),
                "asserted or modelled": len(defined & proved),
                "shown by a test alone": len(defined & set(shown)),
                "a choice": len(defined & (self.listed.keys() - set(shown)))}


def main(arguments):
    names = [a for a in arguments if not a.startswith("-")]
    labels = Labels(names[0] if names else pathlib.Path(__file__).resolve().parent.parent)
    if "--list" in arguments:
        for label, (path, number) in sorted(labels.defined.items()):
            print(f"{path}:{number}: [{label}] {labels.behind(label)}")
    for path, number, what in sorted(labels.wrong):
        print(f"{path}:{number}: {what}" if number else f"{path}: {what}")
    print("labels: " + ", ".join(f"{count} {name}" for name, count in labels.counts().items()))
    return 1 if labels.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
