#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which room calls which, and that no room calls upwards.

usage: rooms.py [ROOT]                  print every breach; the sources are read
       rooms.py --objects DIR [ROOT]    the same for the symbols of built objects, DIR/ROOM/FILE.o
       rooms.py --calls ROOM ROOM [ROOT]   print who calls whom from the first room to the second
       rooms.py --picture [ROOT]        print the picture of docs/ARCHITECTURE.md
       rooms.py --write [ROOT]          write it there; --compare fails if it is another

src/rooms.txt lists the rooms, lowest first. A file may name functions of its own room and of lower
rooms. It may call a higher room only through UPCALLS, a struct that the highest room fills in.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy

UPCALLS = "jrt_upcalls"
UPCALLS_HEADER = "src/task/upcalls.h"
FILES_MAX = 25  # of a room; what only another CPU compiles counts too
DOCUMENT = "docs/ARCHITECTURE.md"
BEGIN, END = "<!-- rooms: tools/rooms.py --write -->", "<!-- end of rooms -->"
NAME = re.compile(r"\b(?:jrt|janus)_\w+")


def order_of(root):
    """{room: how high}, lowest first"""
    lines = (root / "src/rooms.txt").read_text().split("\n")
    rooms = [room for line in lines for room in line.split("#")[0].split()]
    return {room: height for height, room in enumerate(rooms)}


class Tree:
    """The sources: where each shared name is defined, and which file names it."""

    def __init__(self, root):
        self.order = order_of(root)
        self.files = {}  # path below src: code without comments, strings and tags
        self.home = {}   # name: path below src
        for path in sorted((root / "src").glob("*/*")):
            if path.suffix not in (".c", ".h", ".S") or path.parent.name not in self.order:
                continue
            source = tidy.Source(root, path.relative_to(root).as_posix())
            code = "\n".join(tidy.without_strings(line) for line in source.code)
            self.files[source.path[4:]] = re.sub(r"\b(struct|enum|union)\s+\w+", "", code)
            for name in defined(source, code):
                self.home.setdefault(name, source.path[4:])

    def calls(self):
        """(file, name, file that defines it) wherever one file names what another defines"""
        for path, code in self.files.items():
            for name in sorted(set(NAME.findall(code))):
                home = self.home.get(name)
                if home is not None and home != path:
                    yield path, name, home


def defined(source, code):
    """The names that a file defines and others may use."""
    if source.suffix == ".S":
        yield from re.findall(r"^(?:FUNCTION\()?((?:jrt|janus)_\w+)\)?:", code, re.M)
        yield from re.findall(r"\.globl\s+((?:jrt|janus)_\w+)", code)
        return
    for first, last, name in tidy.functions(source):
        head = "\n".join(source.code[first - 1 : last]).split("{")[0]
        if NAME.fullmatch(name) and (source.suffix == ".h" or "static" not in head.split()):
            yield name
    for line in code.split("\n"):  # functions on one line, and objects
        match = re.match(r"(?!extern|typedef|#|static (?!inline))\w[^;={]*?((?:jrt|janus)_\w+)"
                         r"(?:\([^;{}]*\)\s*\{.*\}|(?:\[\w*\])*\s*=.*)$", line)
        if match:
            yield match.group(1)


def room_of(path):
    return path.split("/")[0]


def breaches(root):
    """Names of higher rooms, and rooms that have grown too large."""
    tree = Tree(root)
    for path, name, home in tree.calls():
        if tree.order[room_of(home)] > tree.order[room_of(path)] and name != UPCALLS:
            yield f"src/{path}: {room_of(path)} names {name}, which src/{home} defines above it"
    for room in tree.order:
        count = sum(1 for path in tree.files if room_of(path) == room)
        if count > FILES_MAX:
            yield f"src/{room}: {count} files, limit {FILES_MAX}: which part is a room of its own?"


def symbols(paths):
    """{object: (defined, undefined)} global symbols. One call of nm reads all: each takes 50 ms to
    begin."""
    found = {path: (set(), set()) for path in paths}
    if not found:
        return found
    text = subprocess.run(["nm", "-g", "-A", *map(str, found)], check=True, capture_output=True,
                          text=True).stdout
    by_name = {str(path): sets for path, sets in found.items()}
    for line in filter(None, text.split("\n")):
        name, rest = re.match(r"(.+?\.o):(.*)", line).groups()
        words = rest.split()
        by_name[name][len(words) < 3].add(words[-1])
    return found


def callers(path, symbol):
    """The functions of an object that refer to a symbol."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(path)], check=True,
                          capture_output=True, text=True).stdout
    at, found = "data", set()
    for line in text.split("\n"):
        heading = re.match(r"[0-9a-f]+ <(.+)>:", line)
        at = heading.group(1) if heading else at
        if re.search(rf"R_\w+\s+{re.escape(symbol)}\b", line):
            found.add(at)
    return ", ".join(sorted(found)) or "data"


def object_breaches(root, folder):
    """The same by what the linker will see; also that the sources were read aright."""
    tree = Tree(root)
    objects = symbols(path for path in sorted(folder.glob("*/*.o"))
                      if f"{path.parent.name}/{path.stem}" in tree.files)  # the source is there
    home = {name: path.parent.name for path, (has, _) in objects.items() for name in has}
    if not objects:
        yield f"{folder}: no objects"
    for path, (has, needs) in objects.items():
        room = path.parent.name
        for name in sorted(needs & home.keys() - {UPCALLS}):
            if tree.order[home[name]] > tree.order[room]:
                yield f"{room}/{path.name}: {callers(path, name)} calls {name} in {home[name]}"
        for name in sorted(has):
            if NAME.fullmatch(name) and room_of(tree.home.get(name, room)) != room:
                yield f"{room}/{path.name}: {name} was thought to be in {tree.home[name]}"


def upcalls(root):
    """The names of the upcalls, as the header lists them."""
    text = (root / UPCALLS_HEADER).read_text()
    body = text[text.index("struct jrt_upcalls {") :]
    return re.findall(r"\(\*(\w+)\)\(", body[: body.index("};")])


def picture(root):
    """A matrix: how many functions of a lower room a room calls. Right of the diagonal nothing."""
    tree = Tree(root)
    rooms = list(tree.order)
    called = {}
    raised = {}
    for path, name, home in tree.calls():
        if name == UPCALLS:
            for called_up in re.findall(rf"\b{UPCALLS}\.(\w+)", tree.files[path]):
                raised.setdefault(room_of(path), set()).add(called_up)
        else:
            called.setdefault((room_of(path), room_of(home)), set()).add(name)
    lines = ["room        files " + "".join(f"{height:4d}" for height in range(1, len(rooms) + 1))]
    for height in range(len(rooms) - 1, -1, -1):
        room = rooms[height]
        files = sum(1 for path in tree.files if room_of(path) == room)
        cells = [len(called.get((room, other), ())) for other in rooms[:height]]
        row = "".join(f"{cell or '.':>4}" for cell in cells) + "   \\"
        lines.append(f"{height + 1:2d} {room:9s} {files:4d} {row}")
    lines.append("")
    for room in sorted(raised, key=rooms.index):
        names = [name for name in upcalls(root) if name in raised[room]]
        lines.append(f"{room} calls upwards: {', '.join(names)}")
    return "\n".join(lines)


def with_picture(root):
    text = (root / DOCUMENT).read_text()
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text, f"{text[:first]}\n```\n{picture(root)}\n```\n{text[last:]}"


def tell_calls(root, caller, callee):
    tree = Tree(root)
    for path, name, home in tree.calls():
        if (room_of(path), room_of(home)) == (caller, callee):
            print(f"{path}: {name} ({home})")


def main(arguments):
    mode = arguments.pop(0) if arguments and arguments[0].startswith("--") else ""
    extra = {"--objects": 1, "--calls": 2}.get(mode, 0)
    given, rest = arguments[:extra], arguments[extra:]
    root = pathlib.Path(rest[0] if rest else pathlib.Path(__file__).resolve().parent.parent)
    found = []
    if mode == "--picture":
        print(picture(root))
    elif mode == "--calls":
        tell_calls(root, *given)
    elif mode == "--write":
        (root / DOCUMENT).write_text(with_picture(root)[1])
    elif mode == "--compare":
        before, after = with_picture(root)
        found = [] if before == after else [f"{DOCUMENT}: another picture: {BEGIN[5:-4]}"]
    elif mode == "--objects":
        found = list(object_breaches(root, pathlib.Path(given[0])))
    else:
        found = list(breaches(root))
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
