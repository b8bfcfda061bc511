#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the Janus code blocks out of the documents, as list.txt says.

usage: extract.py FOLDER            write the blocks into this folder
       extract.py --check FOLDER    compare

FOLDER has the documents. They are not part of this repository, so the blocks are.
"""
import pathlib
import re
import sys


def blocks_of(path):
    """The blocks of a document: those marked as Janus, or those of its test scenarios."""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("nursery"):
        return re.findall(r"```\n(.*?)```", text.split("## 10. Test")[1], re.S)
    return re.findall(r"```janus\n(.*?)```", text, re.S)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).parent
    differs = 0
    for line in (here / "list.txt").read_text().split("\n"):
        if not line or line.startswith("#"):
            continue
        name, document, number = line.split()[:3]
        block = blocks_of(pathlib.Path(arguments[0]) / document)[int(number) - 1]
        file = here / f"{name}.jan"
        if "--check" not in sys.argv:
            file.write_text(block, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != block:
            print(f"{file} differs from block {number} of {document}")
            differs = 1
    sys.exit(differs)


if __name__ == "__main__":
    main()
