# SPDX-License-Identifier: MIT
"""Builds programs with `janusrt cc` and runs them in the real runtime, for the tests beside it."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MAJORS = (19, 16, 14)
WHOLE = os.environ.get("CC_MATRIX") == "all"


def run(words, env=None, timeout=300):
    """Runs a command. The variables that would change what janusrt cc does are not passed on."""
    clean = {k: v for k, v in os.environ.items()
             if k not in ("CLANG", "GCC", "JANUSRT_OPS", "JANUSRT_SEED")}
    clean.update(env or {})
    return subprocess.run([str(word) for word in words], env=clean, timeout=timeout,
                          capture_output=True, text=True)


def good(words, env=None, timeout=300):
    """Runs a command that must succeed."""
    done = run(words, env, timeout)
    if done.returncode != 0:
        print("Bail out! " + " ".join(map(str, words)) + f": exit {done.returncode}")
        print(done.stdout + done.stderr)
        sys.stdout.flush()
        os._exit(1)  # also from a thread
    return done


def together(work, items):
    """The results of work(item), on two threads, in the order of the items."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


class Bench:
    """A folder for one test, the command, and the versions of clang that it can use."""

    def __init__(self, command):
        self.command = pathlib.Path(command).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="janusrt-cc-"))
        self.number = self.failed = 0
        self.majors = [major for major in MAJORS
                       if run([self.command, "cc", f"--clang={major}", "--print", "-c", "a.c"]
                              ).returncode == 0]
        if not self.majors:
            print("ok 1 - janusrt cc # SKIP no clang with a plugin (clang-19, llvm-19-dev)")
            sys.exit(77)

    def compile(self, source, level, major=None, flags=()):
        """Compiles a source with the pass; returns the object."""
        source, major = pathlib.Path(source), major or self.majors[0]
        cxx = source.suffix == ".cpp"
        output = self.folder / (f"{source.stem}{level}-{major}" + "".join(flags).replace("/", "_"))
        good([self.command, "c++" if cxx else "cc", f"--clang={major}", "-w", "-g", level,
              "-std=c++17" if cxx else "-std=gnu17", "-D_GNU_SOURCE",
              "-I", HERE.parent / "harness", "-I", HERE.parent / "task", *flags,
              "-c", source, "-o", f"{output}.o"])
        return f"{output}.o"

    def plain(self, source, flags=()):
        """Compiles a source without the pass."""
        output = self.folder / f"{pathlib.Path(source).stem}-plain-{len(flags)}.o"
        good([f"clang-{self.majors[0]}", "-O2", "-g", "-D_GNU_SOURCE", "-I", ROOT / "include",
              "-I", HERE.parent / "harness", *flags, "-c", source, "-o", output])
        return output

    def link(self, objects, name, major=None, flags=()):
        output = self.folder / name
        good([self.command, "c++", f"--clang={major or self.majors[0]}", *flags, *objects,
              "-o", output])
        return output

    def report(self, right, sentence, *details):
        self.number += 1
        self.failed += not right
        print(("ok" if right else "not ok") + f" {self.number} - {sentence}")
        for line in details if not right else ():
            print(f"# {line}")
        sys.stdout.flush()

    def finish(self):
        print(f"1..{self.number}")
        shutil.rmtree(self.folder)
        sys.exit(1 if self.failed else 0)
