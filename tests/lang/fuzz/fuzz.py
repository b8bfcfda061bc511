#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets libFuzzer search for bytes that break the front end.

    fuzz.py FOLDER [--seconds N]

FOLDER has the fuzzers: source_fuzz, ir_fuzz. Each runs for N seconds (3) and begins with the
programs of tests/lang. It prints how many inputs it tried, and the input that broke something.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
INPUT_BYTES_MAX = 4000
FUZZERS = {"source_fuzz": ".jan", "ir_fuzz": ".ir"}
PROFILE = b"\x01"  # the first byte of a source: the profile, where the pragma does not say it


def unpack(folder, ending):
    folder.mkdir()
    for number, path in enumerate(sorted(TESTS.rglob("*" + ending))):
        data = path.read_bytes()
        if len(data) < INPUT_BYTES_MAX:
            (folder / f"{number:04}").write_bytes((PROFILE if ending == ".jan" else b"") + data)


def search(program, seconds, work):
    """(the search found nothing wrong, what to print)"""
    done = subprocess.run(
        [str(program), f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}",
         "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=0", "found", "seeds"],
        cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False)
    text = done.stdout.decode(errors="replace")
    count = re.search(r"number_of_executed_units: (\d+)", text)
    cover = re.findall(r"cov: (\d+)", text)
    said = (f"{count.group(1) if count else '?'} inputs, "
            f"{cover[-1] if cover else '?'} places covered")
    if done.returncode == 0:
        return True, said
    for crash in sorted(work.glob("*-*")):
        said += f"\n# the input: {crash.read_bytes()!r}"
    return False, said + "\n" + "\n".join("# " + line for line in text.split("\n")[-60:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    good = True
    print(f"1..{len(FUZZERS)}", flush=True)
    for number, (fuzzer, ending) in enumerate(FUZZERS.items(), 1):
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            (work / "found").mkdir()
            unpack(work / "seeds", ending)
            right, said = search(options.folder.resolve() / fuzzer, options.seconds, work)
        print(f"{'ok' if right else 'not ok'} {number} - {fuzzer} finds no bytes that break the "
              f"front end\n# {fuzzer}: {said}", flush=True)
        good = good and right
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
