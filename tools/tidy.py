#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of this tree that no compiler knows. Usage: tools/tidy.py [root]

Prints `file:line: what` for each breach and exits with 1 if there was any. HACKING.md says why the
rules are what they are; tests/tidy/tidy_test.py shows a breach of each.
"""

import pathlib
import re
import subprocess
import sys

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 600
COLUMNS_MAX = 100
REASON_LINES_ABOVE = 4  # how far above an atomic operation its reason may stand

C_SUFFIXES = {".c", ".h", ".S", ".cpp"}
C_FOLDERS = ("src", "http", "tls", "lang", "cc", "cmd", "include", "tests", "bench", "examples")
NO_SPDX = {".json", ".jsonl", ".csv", ".svg", ".png"}
NO_SPDX_NAMES = {"LICENSE"}
NO_SPDX_FOLDERS = ("tests/lang/documents/", "tests/lang/gallery/")  # every byte is the test
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
ANSWERS = ("Context:", "Yields:", "Owns:", "Cost:", "Errors:")
UNFINISHED = ("TO" "DO", "FIX" "ME", "X" "XX")

LABEL = r"\[([a-z][a-z0-9]+(?:-[a-z0-9]+)+)\]"


class Source:
    """A file: its lines, and for C and assembly the same lines as code only and comment only."""

    def __init__(self, root, path):
        self.path = path  # relative to root, with forward slashes
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.name = pathlib.PurePosixPath(path).name
        self.top = path.split("/")[0] if "/" in path else ""
        self.is_c = self.suffix in C_SUFFIXES and self.top in C_FOLDERS
        if self.is_c:
            code, comment = split_comments(self.text)
            self.code = code.split("\n")
            self.comment = comment.split("\n")


def split_comments(text):
    """(code, comments): both of the same shape as text, the other half replaced by spaces.

    String literals stay in the code.
    """
    token = re.compile(
        r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    code, comment, at = [], [], 0
    for match in token.finditer(text):
        between = text[at : match.start()]
        code.append(between)
        comment.append(blank(between))
        is_comment = match.group().startswith(("//", "/*"))
        code.append(blank(match.group()) if is_comment else match.group())
        comment.append(match.group() if is_comment else blank(match.group()))
        at = match.end()
    code.append(text[at:])
    comment.append(blank(text[at:]))
    return "".join(code), "".join(comment)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_strings(line):
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', line)


def list_files(root):
    """What git tracks or would track; without git, everything outside build/ and .git/."""
    try:
        names = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"],
            check=True, capture_output=True, text=True).stdout.split("\0")
        top = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--show-toplevel"],
            check=True, capture_output=True, text=True).stdout.strip()
        if pathlib.Path(top).resolve() != root.resolve():
            raise OSError("root is not a work tree of its own")
    except (OSError, subprocess.CalledProcessError):
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")]
        names = [n for n in names
                 if n.split("/")[0] not in ("build", ".git") and "__pycache__" not in n]
    return sorted({n for n in names if n and (root / n).is_file() and not (root / n).is_symlink()})


# The rules. Each is a generator of (path, line, message); line 0 stands for the whole file.


def rule_rooms(root, sources):
    """A room includes itself and rooms on earlier lines of its rooms.txt only."""
    for top in ("src", "lang"):
        if (root / top).is_dir():
            yield from rooms_of(root, top, sources)


def rooms_of(root, top, sources):
    listing = f"{top}/rooms.txt"
    order = {}
    text = (root / listing).read_text() if (root / listing).is_file() else ""
    for number, line in enumerate(text.split("\n"), 1):
        for room in line.split("#")[0].split():
            if room in order:
                yield listing, number, f"room {room} is listed twice"
            order[room] = number
            if not (root / top / room).is_dir():
                yield listing, number, f"there is no folder {top}/{room}"
    coded = {source.path.split("/")[1] for source in sources
             if source.is_c and source.top == top and source.path.count("/") > 1}
    for folder in sorted(coded - order.keys()):
        yield listing, 0, f"folder {top}/{folder} is not listed"
    for source in sources:
        parts = source.path.split("/")
        if not source.is_c or source.top != top or len(parts) < 3:
            continue
        here = parts[1]
        for number, line in enumerate(source.code, 1):
            match = re.match(r'\s*#\s*include\s+"([^"]*)"', line)
            if not match or here not in order:
                continue
            room = match.group(1).split("/")[0]
            if "/" not in match.group(1) or room == "..":
                better = f'"{here}/{match.group(1)}"'
                yield source.path, number, f"write {better}: includes name the room"
            elif room not in order:
                yield source.path, number, f"there is no room {room}"
            elif room != here and order[room] >= order[here]:
                yield source.path, number, f"{here} must not look into {room}"


def rule_http(root, sources):
    """HTTP, TLS and the compiler see their own folder and the public headers, <janusrt/...>."""
    for source in sources:
        if not source.is_c or source.top not in ("http", "tls", "cc"):
            continue
        for number, line in enumerate(source.code, 1):
            match = re.match(r'\s*#\s*include\s+"([^"]*)"', line)
            if match and not re.fullmatch(rf"{source.top}/(?:\w+/)?[\w.]+", match.group(1)):
                yield (source.path, number, f'{source.top} must not look into '
                       f'"{match.group(1)}": include {source.top}/... or <janusrt/...>')


def functions(source):
    """(first line, last line, name) of each function; bodies begin with { in the first column."""
    first = None
    if source.suffix == ".S":
        for number, line in enumerate(source.code, 1):
            if ".cfi_startproc" in line:
                first = number
            elif ".cfi_endproc" in line and first is not None:
                above = " ".join(source.code[max(0, first - 3) : first])
                labels = re.findall(r"(\w+):", above)
                yield first, number, labels[-1] if labels else "code"
                first = None
        return
    for number, line in enumerate(source.code, 1):
        if line.startswith("{"):
            first = number
            while first > 1 and re.match(r"\s*[\w_*(]", source.code[first - 2]) \
                    and not source.code[first - 2].rstrip().endswith((";", "}")):
                first -= 1
        elif line.startswith("}") and first is not None:
            head = " ".join(source.code[first - 1 : number])
            head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head.split("{")[0])
            match = re.search(r'TEST\((".*?")\)', head) or re.search(r"(\w+)\s*\(", head)
            yield first, number, match.group(1) if match else "function"
            first = None


def rule_size(root, sources):
    """Functions, files and lines have limits."""
    for source in sources:
        if source.is_c:
            for first, last, name in functions(source):
                lines = last - first + 1
                if lines > FUNCTION_LINES_MAX:
                    yield (source.path, first,
                           f"{name} is {lines} lines, limit {FUNCTION_LINES_MAX}")
            if len(source.lines) > FILE_LINES_MAX:
                yield (source.path, 0, f"{len(source.lines)} lines, limit {FILE_LINES_MAX}: "
                       "which half is a room of its own?")
        if source.is_c or is_script(source):
            for number, line in enumerate(source.lines, 1):
                columns = len(line.expandtabs(8))
                if columns > COLUMNS_MAX:
                    yield source.path, number, f"{columns} columns, limit {COLUMNS_MAX}"


def is_script(source):
    return (source.suffix in (".py", ".sh", ".cmake")
            or source.name in ("Makefile", "CMakeLists.txt")
            or source.text.startswith("#!"))


def rule_spdx(root, sources):
    """Every file says its licence in the first three lines."""
    for source in sources:
        if source.suffix in NO_SPDX or source.name in NO_SPDX_NAMES or not source.lines:
            continue
        if source.path.startswith(NO_SPDX_FOLDERS) and source.suffix in (".jan", ".txt"):
            continue
        if not any("SPDX-License-Identifier: MIT" in line for line in source.lines[:3]):
            yield source.path, 1, "no SPDX-License-Identifier in the first three lines"


def comment_blocks(source):
    """For each line, the text of the comment it belongs to: adjoining comment lines are one."""
    blocks = [""] * len(source.comment)
    start = None
    for number in range(len(source.comment) + 1):
        has = number < len(source.comment) and source.comment[number].strip() != ""
        alone = has and source.code[number].strip() == ""
        if start is not None and not alone:
            text = "\n".join(source.comment[start:number])
            blocks[start:number] = [text] * (number - start)
            start = None
        if alone and start is None:
            start = number
        elif has and not alone:
            blocks[number] = source.comment[number]
    return blocks


def rule_atomics(root, sources):
    """Every atomic operation in src/ names its order and, beside it, the reason."""
    call = re.compile(r"\bjrt_(?:load|store|cas|exchange|fetch|fence)_\w+(?=\s*\()")
    raw = re.compile(r"\b(?:atomic|__atomic|__sync)_\w+|\bmemory_order_\w+")
    for source in sources:
        if not source.is_c or source.top not in ("src", "include"):
            continue
        if source.path == "src/base/atomic.h":
            continue
        blocks = comment_blocks(source)
        for number, line in enumerate(source.code):
            line = without_strings(line)
            for match in raw.finditer(line):
                yield source.path, number + 1, f"{match.group()}: only base/atomic.h may use it"
            for match in call.finditer(line):
                name = match.group()
                order = next((o for o in ORDERS if name.endswith("_" + o)), None)
                if order is None:
                    yield source.path, number + 1, f"{name} does not say its memory order"
                    continue
                near = "\n".join(blocks[max(0, number - REASON_LINES_ABOVE) : number + 1])
                if not re.search(rf"\b{order}\b", near):
                    yield (source.path, number + 1, f'{name}: no comment says why "{order}" '
                           "is enough")


def rule_answers(root, sources):
    """Every public function answers five questions, in this order."""
    for source in sources:
        if not source.is_c or not source.path.startswith("include/"):
            continue
        blocks = comment_blocks(source)
        for number, line in enumerate(source.code):
            if "JANUS_API" not in line or line.lstrip().startswith("#"):
                continue
            first = number
            while first > 0 and source.code[first - 1].strip() != "" \
                    and not source.code[first - 1].rstrip().endswith((";", "}", "{")):
                first -= 1
            declaration = " ".join(source.code[first : first + 8])
            names = re.findall(r"(\bjanus_\w+)\s*\(", declaration)
            name = names[0] if names else "this"
            answer = blocks[first - 1] if first > 0 else ""
            places = [answer.find(word) for word in ANSWERS]
            missing = [w for w, place in zip(ANSWERS, places) if place < 0]
            if missing:
                yield source.path, number + 1, f"{name} does not say {' '.join(missing)}"
            elif places != sorted(places):
                yield source.path, number + 1, f"{name}: the order is {' '.join(ANSWERS)}"


def defined_labels(source):
    """(line, label) of each definition in a source.

    A definition is a comment on a line of its own that begins with the label, or any comment that
    begins with a memory order, the label and a colon.
    """
    definition = re.compile(rf"(?:{LABEL})|(?:{'|'.join(ORDERS)}) {LABEL}:")
    for number, line in enumerate(source.comment, 1):
        head = definition.match(comment_text(line))
        if head and (head.group(2) or source.code[number - 1].strip() == ""):
            yield number, head.group(1) or head.group(2)


def comment_text(line):
    return re.sub(r"^(?:/\*+|//+|\*)\s*", "", line.strip())


def rule_labels(root, sources):
    """A label cited in a comment is defined once; a defined one is cited somewhere else.

    jrt_invariant("label", ...) and jrt_debug_invariant cite. tools/labels.py asks what stands
    behind a label.
    """
    defined, cited = {}, {}
    for source in sources:
        if not source.is_c:
            continue
        here = dict(defined_labels(source)) if source.top in ("src", "include") else {}
        for number, line in enumerate(source.comment, 1):
            text = comment_text(line)
            if number in here:
                label = here[number]
                if label in defined:
                    where = "{}:{}".format(*defined[label])
                    yield source.path, number, f"[{label}] is already defined at {where}"
                defined.setdefault(label, (source.path, number))
                text = text.partition(f"[{label}]")[2]
            for label in re.findall(LABEL, text):
                cited.setdefault(label, (source.path, number))
        for number, line in enumerate(source.code, 1):
            for label in re.findall(r'\bjrt_(?:debug_)?invariant\(\s*"([^"]+)"', line):
                cited.setdefault(label, (source.path, number))
    for label, (path, number) in sorted(cited.items()):
        if label not in defined:
            yield path, number, f"[{label}] is cited and nowhere defined"
    for label, (path, number) in sorted(defined.items()):
        if label not in cited:
            yield path, number, f"[{label}] is defined and never cited"


def rule_words(root, sources):
    """Nothing is left for later, and no test sleeps."""
    unfinished = re.compile(rf"\b(?:{'|'.join(UNFINISHED)})\b")
    sleeping = re.compile(r"\b(?:sleep|usleep|nanosleep|clock_nanosleep)\s*\(")
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            match = unfinished.search(line)
            if match:
                yield source.path, number, f"{match.group()}: do it or drop it"
        if source.is_c and source.top == "tests":
            for number, line in enumerate(source.code, 1):
                if sleeping.search(without_strings(line)):
                    yield source.path, number, "a test must not sleep: wait for what it waits for"


def rule_results(root, sources):
    """Examples and headers show users how to fail: -1 to -99 are statuses of the library."""
    result = re.compile(r"\b(?:return|: *)\s*-[1-9][0-9]?;")
    for source in sources:
        if not source.is_c or source.top not in ("include", "examples"):
            continue
        for number, line in enumerate(source.lines, 1):
            if result.search(without_strings(line)):
                yield source.path, number, "-1 to -99 are statuses: return a number below -99"


def rule_told(root, sources):
    """Public calls for I/O return errors through jrt_io_told, so that janus_explain knows them."""
    public = re.compile(r"^janus_status janus_")
    plain = re.compile(r"\breturn (?!JANUS_OK;|jrt_io_told\()")
    for source in sources:
        # The hot calls are told of where they become slow.
        if not source.path.startswith("src/io/") or source.name == "quick.c" or not source.is_c:
            continue
        inside = False
        for number, line in enumerate(source.code, 1):
            inside = (inside or bool(public.match(line))) and not line.startswith("}")
            if inside and plain.search(line):
                yield source.path, number, "a public call for I/O returns through jrt_io_told"


# The seam itself; the simulated system; the recorder, which must not pass points of the world it
# records ([trace-pure]); the explorer, which runs outside of all worlds.
OUTSIDE_WORLDS = {"plat", "sim", "trace", "explore"}


def rule_memory(root, sources):
    """Rooms ask the seam for memory, so that a world can refuse it."""
    call = re.compile(r"\b(?:malloc|calloc|realloc|strn?dup|aligned_alloc|posix_memalign)(?=\s*\()")
    for source in sources:
        parts = source.path.split("/")
        if not source.is_c or source.top != "src" or parts[1] in OUTSIDE_WORLDS:
            continue
        for number, line in enumerate(source.code, 1):
            for match in call.finditer(without_strings(line)):
                name = match.group()
                yield source.path, number, f"{name}: ask the seam, jrt_{name}, for memory"


RULES = (
    rule_rooms,
    rule_http,
    rule_size,
    rule_spdx,
    rule_atomics,
    rule_answers,
    rule_labels,
    rule_words,
    rule_results,
    rule_told,
    rule_memory,
)


def check(root):
    """All breaches below root, as sorted lines of text."""
    root = pathlib.Path(root)
    sources = [Source(root, path) for path in list_files(root)]
    breaches = sorted({breach for rule in RULES for breach in rule(root, sources)})
    return [f"{path}:{line}: {what}" if line else f"{path}: {what}"
            for path, line, what in breaches]


def main(arguments):
    here = pathlib.Path(__file__).resolve().parent.parent
    breaches = check(arguments[0] if arguments else here)
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
