#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets libFuzzer search for bytes that break the parsers of HTTP.

    fuzz.py FOLDER [--seconds N] [--keep]

FOLDER has the fuzzers: head_fuzz, chunk_fuzz, file_fuzz, frame_fuzz. Each runs for N seconds (3),
begins with the rows of tests/http/*.txt, and prints how many inputs it tried. --keep writes what
the search found to be new to tests/http/corpus.txt, without what the tables reach already.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import http_table

TABLES = pathlib.Path(__file__).resolve().parent.parent / "tests/http"
CORPUS = TABLES / "corpus.txt"
FUZZERS = ("head_fuzz", "chunk_fuzz", "file_fuzz", "frame_fuzz")
INPUT_BYTES_MAX = 2048
KEPT_BYTES_MAX = 96  # of an input in corpus.txt
KEPT_MAX = 100       # inputs of one fuzzer in corpus.txt
CORPUS_HEAD = """# SPDX-License-Identifier: MIT
# Inputs that reach code which requests.txt and answers.txt do not reach: fuzzer and bytes,
# separated by a tab. `make fuzz KEEP=1` writes this file.
"""


def seeds(fuzzer):
    """Inputs to begin with: rows of the tables in the form that the fuzzer reads."""
    tables = [(0, "requests.txt"), (1, "answers.txt")]
    for kind, name in tables:
        for _, data, _ in http_table.requests(TABLES / name):
            head, _, body = data.partition(b"\r\n\r\n")
            if len(data) > INPUT_BYTES_MAX:
                continue
            if fuzzer == "head_fuzz":
                yield bytes([kind, 0x80]) + data
                if body.startswith(b"0\r\n"):
                    yield bytes([3, 0x80]) + body[3:]
            elif fuzzer == "chunk_fuzz" and b"chunked" in head:
                yield b"\x02" + body
            elif fuzzer == "file_fuzz":
                yield from head.split(b" ")[1:2]
    if fuzzer == "file_fuzz":
        yield from (b"bytes=0-499", b"bytes=-5", b'W/"a", "b"', b"Sun, 06 Nov 1994 08:49:37 GMT",
                    b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994",
                    b"/a/../b%20c/", b"[::1]:80", b'a, "b, c"', b"9223372036854775807",
                    b"http://b:2/c/../d?e", b"//b/./c", b"../../x?y#z", b"?q", b"mailto:a")
    if fuzzer == "frame_fuzz":
        yield from (b"\x02\x81\x05Hello", b"\x82\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
                    b"\x03\x01\x03Hel\x89\x01p\x80\x02lo", b"\x02\x88\x05\x03\xe8bye",
                    b"\x01\x82\x7e\x00\x80" + bytes(128), b"\x02\x01\x01\xc3\x80\x01\xa9")


def kept(fuzzer):
    if CORPUS.exists():
        for name, data in http_table.rows(CORPUS):
            if name == fuzzer:
                yield http_table.unescape(data)


def unpack(folder, inputs):
    folder.mkdir(parents=True)
    for number, data in enumerate(inputs):
        (folder / f"{number:04}").write_bytes(data)


def run(program, arguments, folder):
    return subprocess.run([str(program), *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def search(program, seconds, work):
    """(the search found nothing wrong, what to print)"""
    done = run(program, [f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}",
                         "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=0",
                         "found", "tables", "kept"], work)
    text = done.stdout.decode(errors="replace")
    count = re.search(r"number_of_executed_units: (\d+)", text)
    seed = re.search(r"Seed: (\d+)", text)
    cover = re.findall(r"cov: (\d+)", text)
    said = (f"{count.group(1) if count else '?'} inputs, {cover[-1] if cover else '?'} places "
            f"covered, seed {seed.group(1) if seed else '?'}")
    if done.returncode == 0:
        return True, said
    for crash in sorted(work.glob("*-*")):
        said += f"\n# the input: {http_table.escape(crash.read_bytes())}"
    return False, said + "\n" + "\n".join("# " + line for line in text.split("\n")[-60:])


def keep(program, work):
    """The inputs that reach more than the tables do: few and short."""
    shutil.copytree(work / "tables", work / "base")
    short = [path.read_bytes() for name in ("kept", "found") for path in (work / name).iterdir()]
    unpack(work / "short", [data for data in short if len(data) <= KEPT_BYTES_MAX])
    run(program, ["-merge=1", "base", "short"], work)
    before = {path.read_bytes() for path in (work / "tables").iterdir()}
    new = [path.read_bytes() for path in (work / "base").iterdir()]
    return sorted(set(new) - before, key=lambda data: (len(data), data))[:KEPT_MAX]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    good, lines = True, []
    print(f"1..{len(FUZZERS)}", flush=True)
    for number, fuzzer in enumerate(FUZZERS, 1):
        program = options.folder.resolve() / fuzzer
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            (work / "found").mkdir()
            unpack(work / "tables", seeds(fuzzer))
            unpack(work / "kept", kept(fuzzer))
            right, said = search(program, options.seconds, work)
            print(f"{'ok' if right else 'not ok'} {number} - {fuzzer} finds no bytes that break a "
                  f"parser\n# {fuzzer}: {said}", flush=True)
            good = good and right
            if options.keep and right:
                lines += [f"{fuzzer}\t{http_table.escape(data)}\n" for data in keep(program, work)]
    if options.keep and good:
        CORPUS.write_text(CORPUS_HEAD + "".join(lines), encoding="latin-1")
        print(f"# {len(lines)} inputs in {CORPUS}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
