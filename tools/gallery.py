#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Renders the gallery of wrong Janus programs into docs/lang/errors.md.

usage: gallery.py            write the page
       gallery.py --check    say whether the page is up to date, and whether each code of the front
                             end has a program in the gallery

The programs are tests/lang/gallery/CODE_what.jan, their first line is the title. What the checker
says stands in the .txt beside each; lang/gallery_test compares it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ROOT / "tests/lang/gallery"
PAGE = ROOT / "docs/lang/errors.md"
ROOMS = ("text", "type", "syntax", "meaning")  # QTJIR has codes of its own: Q1, Q2

GROUPS = [
    ("S", "Syntax", "The parser could not read the text. It goes on after the place, so that one "
     "run shows several errors."),
    ("N", "Names and places", "A name is unknown, or something stands where it has no meaning."),
    ("P", "Profiles", "The profile of the file forbids something. The first line chooses it."),
    ("C", "Capabilities", "An operation lacks its capability, or a capability goes where it must "
     "not go."),
    ("T", "Types", "A value has another type than its place needs."),
    ("W", "Warnings", "The program runs, but it loses something."),
    ("X", "Many errors", "One mistake gives one message, and twenty messages are enough."),
]

HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- tools/gallery.py writes this page from tests/lang/gallery. -->
# Errors of Janus programs

Each message has a code, a place, the rule in words, the source line with a caret, and one line of
help. This page shows a program for each code, and what `janusrt check` says about it.

| codes | about |
|---|---|
"""


def codes_of_sources():
    """Each code that a source names: {code: file}."""
    found = {}
    for room in ROOMS:
        for source in sorted((ROOT / "lang" / room).glob("*.[ch]")):
            for code in re.findall(r'"([A-Z]\d{4})"', source.read_text(encoding="utf-8")):
                found.setdefault(code, source.relative_to(ROOT))
    return found


def render():
    parts = [HEAD]
    for letter, title, _ in GROUPS:
        name = letter if letter != "X" else "any"
        parts.append(f"| {name} | [{title}](#{title.lower().replace(' ', '-')}) |\n")
    for letter, title, about in GROUPS:
        parts.append(f"\n## {title}\n\n{about}\n")
        for program in sorted(GALLERY.glob(f"{letter}*.jan")):
            code = program.name.split("_")[0]
            first, rest = program.read_text(encoding="utf-8").split("\n", 1)
            said = program.with_suffix(".txt").read_text(encoding="utf-8")
            head = first.removeprefix("// ")
            head = head if code == "X" else f"{code}: {head}"
            parts.append(f"\n### {head}\n\n```janus\n{rest}```\n\n```text\n{said}```\n")
    return "".join(parts)


def check():
    wrong = []
    said = "".join(p.read_text(encoding="utf-8") for p in sorted(GALLERY.glob("*.txt")))
    shown = set(re.findall(r"(?:error|warning)\[(\w+)\]:", said))
    for code, source in sorted(codes_of_sources().items()):
        if code not in shown:
            wrong.append(f"{source} has the code {code}, but no program of the gallery shows it")
        elif not list(GALLERY.glob(f"{code}_*.jan")):
            wrong.append(f"no program of the gallery is named {code}_...")
    for program in sorted(GALLERY.glob("*.jan")):
        code = program.name.split("_")[0]
        text = program.with_suffix(".txt")
        if not text.exists():
            wrong.append(f"{program.name} has no .txt beside it")
        elif code != "X" and f"[{code}]:" not in text.read_text(encoding="utf-8"):
            wrong.append(f"{text.name} does not have its own code")
        if not program.read_text(encoding="utf-8").startswith("// "):
            wrong.append(f"{program.name} does not begin with a title")
    if not wrong and (not PAGE.exists() or PAGE.read_text(encoding="utf-8") != render()):
        wrong.append("docs/lang/errors.md is not up to date: run tools/gallery.py")
    return wrong


def main():
    if sys.argv[1:] == ["--check"]:
        wrong = check()
        print("\n".join(wrong), end="\n" if wrong else "")
        sys.exit(1 if wrong else 0)
    if sys.argv[1:]:
        sys.exit(__doc__)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
