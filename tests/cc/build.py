# SPDX-License-Identifier: MIT
"""Builds and runs programs with the pass, for the tests beside this file."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
MAJORS = (19, 16, 14)
ARM = "aarch64-linux-gnu"
PATIENCE = 600  # seconds; the machine may be busy
WHOLE = os.environ.get("CC_MATRIX") == "all"


class Build:
    """A compiler, a level and the words for the pass."""

    def __init__(self, major, level, words="", target=None):
        self.major, self.level, self.words, self.target = major, level, words, target

    def __str__(self):
        text = f"clang {self.major} {self.level}"
        return text + (f" {self.words}" if self.words else "") + (" aarch64" if self.target else "")


class Bench:
    """A folder for one test, and what it found installed."""

    def __init__(self, plugins):
        self.plugins = pathlib.Path(plugins)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="janusrt-cc-"))
        self.majors = [m for m in MAJORS
                       if (self.plugins / f"janusrt_ops_{m}.so").exists()
                       and shutil.which(f"clang-{m}")]
        self.arm = shutil.which("qemu-aarch64") and shutil.which(f"{ARM}-gcc")
        self.number = self.failed = 0
        self.lock = threading.Lock()
        if not self.majors:
            print("ok 1 - the pass # SKIP no clang with a plugin (clang-19, llvm-19-dev)")
            sys.exit(77)
        for major in MAJORS:
            if major not in self.majors:
                print(f"# clang {major} is not tested: no clang-{major}, or no plugin for it")
        if not self.arm:
            print(f"# aarch64 is not tested: no qemu-aarch64, or no {ARM}-gcc")

    def path(self, name):
        return self.folder / name

    def compile(self, build, source, output, flags=(), check=True):
        """Compiles one source with the pass; returns the finished process."""
        name = "clang++" if str(source).endswith(".cpp") else "clang"
        command = [f"{name}-{build.major}", build.level, "-w",
                   f"-fpass-plugin={self.plugins}/janusrt_ops_{build.major}.so",
                   *(["-target", ARM] if build.target else []), *flags,
                   "-c", str(source), "-o", str(output)]
        words = ",".join(w for w in ("verify", build.words) if w)
        return run(command, check, {"JANUSRT_OPS": words}, timeout=PATIENCE)

    def link(self, build, objects, output, flags=()):
        """Links objects, and compiles plain sources among them without the pass."""
        if build.target:
            command = [f"{ARM}-gcc", "-static"]
        else:
            command = [f"clang-{build.major}"]
        objects = [self.plain(command[0], path) if str(path).endswith(".c") else path
                   for path in objects]
        run([*command, *map(str, objects), *flags, "-o", str(output)])

    def plain(self, compiler, source):
        """Compiles a source without the pass, once for each compiler."""
        output = self.path(f"{compiler}.{source.stem}.plain.o")
        with self.lock:
            if not output.exists():
                run([compiler, "-O1", "-c", source, "-o", output])
        return output

    def execute(self, build, program, *arguments, env=None, timeout=PATIENCE, check=True):
        prefix = ["qemu-aarch64"] if build.target else []
        return run([*prefix, str(program), *arguments], check, env, timeout)

    def report(self, good, sentence, *details):
        self.number += 1
        self.failed += not good
        print(("ok" if good else "not ok") + f" {self.number} - {sentence}")
        if not good:
            for line in details:
                print(f"# {line}")

    def finish(self):
        print(f"1..{self.number}")
        shutil.rmtree(self.folder)
        sys.exit(1 if self.failed else 0)


def run(command, check=True, env=None, timeout=PATIENCE):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **(env or {})})
    if check and done.returncode != 0:
        print("Bail out! " + " ".join(map(str, command)) + f": exit {done.returncode}")
        print(done.stdout + done.stderr)
        sys.exit(1)
    return done


def together(work, items):
    """The results of work(item), on two threads, in the order of the items."""
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        return list(pool.map(work, items))


def matrix(bench):
    """The builds to compare. A part by default; CC_MATRIX=all has every level and compiler."""
    builds = [Build(major, level) for major in bench.majors for level in LEVELS
              if WHOLE or level in ("-O0", "-O2") or major == bench.majors[0]]
    first = bench.majors[0]
    builds.append(Build(first, "-O2", "naive"))
    if WHOLE:
        for step in ("fold", "strip", "hoist", "register", "delay"):
            builds.append(Build(first, "-O2", f"off={step}"))
    if bench.arm:
        builds += [Build(major, level, "", ARM) for major in bench.majors for level in LEVELS
                   if WHOLE or (major, level) in ((first, "-O2"), (bench.majors[-1], "-O0"))]
    if not WHOLE:
        print(f"# {len(builds)} builds; CC_MATRIX=all compares every level and compiler")
    return builds
