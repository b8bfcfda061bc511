#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traps of counted code, in the real runtime, with programs that `janusrt cc` builds.

usage: traps_test.py JANUSRT
CC_MATRIX=all in the environment: every installed clang.
"""

import re
import shutil
import sys

import tasks

FOLDER = tasks.HERE / "traps"
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
RACES = ("lost_sum", "half_copy", "early_flag", "moved_entry", "overdraft")


def traps(bench):
    """traps.c at every level, which has tests of its own."""
    harness = bench.plain(tasks.HERE.parent / "harness" / "harness.c")
    builds = [(bench.majors[0], level) for level in LEVELS]
    if tasks.WHOLE:
        builds += [(major, level) for major in bench.majors[1:] for level in LEVELS]

    def make(build):
        objects = [bench.compile(FOLDER / name, build[1], build[0])
                   for name in ("traps.c", "frames.c", "values.c")]
        return bench.link([*objects, harness], f"traps{build[1]}-{build[0]}", build[0])

    for build, program in zip(builds, tasks.together(make, builds)):
        done = tasks.run([program], timeout=600)
        passed = len(re.findall("^ok ", done.stdout, re.M))
        bench.report(done.returncode == 0, f"{passed} traps, clang {build[0]} {build[1]}",
                     *done.stdout.split("\n"), done.stderr)


def thrown(bench):
    for level in ("-O0", "-O2"):
        program = bench.link([bench.compile(FOLDER / "thrown.cpp", level)], f"thrown{level}")
        done = tasks.run([program], timeout=600)
        bench.report(done.returncode == 0,
                     f"a task handles its own exceptions, also on another thread, {level}",
                     done.stdout, done.stderr)


def hashes(bench):
    """Where a loop pays ahead it cannot be stopped, so only builds with the same checks compare."""
    def run_all(level, flags=()):
        name = f"hashes{level}" + "".join(flags)
        program = bench.link([bench.compile(FOLDER / "hashes.c", level, flags=flags)], name)
        return tasks.good([program]).stdout

    naive = [run_all(level, ("--ops=naive",)) for level in ("-O0", "-O2")]
    bench.report(naive[0] == naive[1] == run_all("-O0"),
                 "a seed gives the same execution at -O0, and at -O2 with --ops=naive", *naive)
    others = [run_all(level) for level in ("-O1", "-O2", "-O3")]
    bench.report(others[0] == others[1] == others[2],
                 "a seed gives the same execution at -O1, -O2 and -O3", *others)


def races(bench):
    """Each race is found, and its replay fails. Without the bug nothing is found."""
    for level, flags in (("-O0", ()), ("-O2", ("--ops=naive",))):  # see hashes()
        program = bench.link([bench.compile(FOLDER / "races.c", level, flags=flags)],
                             f"races{level}")
        for race in RACES:
            found = tasks.run([bench.command, "explore", "--schedules", "500", program, "--", race])
            text = re.search(r"JANUSRT_REPLAY=(\S+)", found.stdout + found.stderr)
            again = tasks.run([program, race], {"JANUSRT_REPLAY": text.group(1)}) if text else None
            bench.report(found.returncode == 1 and again is not None and again.returncode == 3,
                         f"the race {race} is found and replayed, {level} {' '.join(flags)}",
                         found.stdout + found.stderr, again)
            mended = tasks.run([bench.command, "explore", "--schedules", "100", program, "--",
                                race, "mended"])
            bench.report(mended.returncode == 0, f"{race} without the bug, {level}",
                         mended.stdout + mended.stderr)


def locks(bench):
    """Locks of threads do not block a deterministic run, and an order that deadlocks is found."""
    program = bench.link([bench.compile(FOLDER / "locks.c", "-O0")], "locks")
    done = tasks.run([bench.command, "explore", "--schedules", "100", program], timeout=60)
    bench.report(done.returncode == 0, "locks of threads exclude in 100 schedules",
                 done.stdout, done.stderr)
    for seed in ("1", "7"):
        done = tasks.run([program], {"JANUSRT_SEED": seed}, timeout=60)
        bench.report(done.returncode == 0, f"locks of threads exclude, with the seed {seed}",
                     done.stdout, done.stderr)
    done = tasks.run([bench.command, "explore", "--schedules", "500", "--steps", "20000", program,
                      "--", "order"], timeout=60)
    bench.report(done.returncode == 1 and "too many steps" in done.stdout + done.stderr,
                 "two mutexes in opposite order are found", done.stdout, done.stderr)


def replays(bench):
    """The lines of docs/gallery.md show the races."""
    program = bench.link([bench.compile(FOLDER / "races.c", "-O0")], "replayed")
    text = (tasks.ROOT / "docs/gallery.md").read_text()
    lines = re.findall(r"^JANUSRT_REPLAY=(\S+) \./races (\w+)$", text, re.M)
    bench.report(sorted(race for _, race in lines) == sorted(RACES),
                 "the gallery has a line for each race", *lines)
    for replay, race in lines:
        done = tasks.run([program, race], {"JANUSRT_REPLAY": replay})
        bench.report(done.returncode == 3, f"the gallery's line replays {race}",
                     done.stdout + done.stderr)


def steps(bench):
    """gdb goes from line to line of counted code, also past a check."""
    if not shutil.which("gdb"):
        print("# steps are not tested: no gdb")
        return
    program = bench.link([bench.compile(FOLDER / "hashes.c", "-O0")], "stepped")
    done = tasks.run(["gdb", "-batch", "-nx", "-ex", "break compute", "-ex", "run",
                      *["-ex", "next"] * 12, program])
    if "ptrace" in done.stderr:
        print("# steps are not tested: gdb may not trace here")
        return
    lines = [int(line) for line in re.findall(r"^(\d+)\t", done.stdout, re.M)]
    source = (FOLDER / "hashes.c").read_text().split("\n")
    begin = next(at for at, text in enumerate(source, 1) if "compute(" in text)
    end = next(at for at in range(begin, len(source)) if source[at - 1] == "}")
    bench.report(len(lines) == 13 and all(begin <= line <= end for line in lines)
                 and len(set(lines)) > 2, "gdb steps by lines through a loop with checks",
                 str(lines), done.stdout, done.stderr)


def backtrace(bench):
    """gdb walks from a slow path to the loop, and knows its line."""
    if not shutil.which("gdb"):
        print("# backtraces are not tested: no gdb")
        return
    for level in ("-O0", "-O2"):
        program = bench.link([bench.compile(FOLDER / "hashes.c", level)], f"stopped{level}")
        done = tasks.run(["gdb", "-batch", "-nx", "-ex", "break compute", "-ex", "run",
                          "-ex", "delete", "-ex", "break jrt_check_taken", "-ex", "continue",
                          "-ex", "bt", program])
        frames = re.findall(r"^#\d+ .*$", done.stdout, re.M)
        stub = [i for i, frame in enumerate(frames) if "janus_check_stub" in frame]
        caller = [i for i, frame in enumerate(frames) if "hashes.c:" in frame]
        if "ptrace" in done.stderr:
            print("# backtraces are not tested: gdb may not trace here")
            return
        bench.report(bool(stub and caller and stub[0] < caller[0]),
                     f"gdb's backtrace goes through the stub, {level}", done.stdout, done.stderr)


def sanitizers(bench):
    """Counted code under a sanitizer: hostile loops and traps in plain threads and in tasks."""
    harness = bench.plain(tasks.HERE.parent / "harness" / "harness.c")
    for kind, words in (("undefined", [""]), ("address", ["outside", "mutex", "strips", "cost"]),
                        ("thread", ["outside"])):
        flag = f"-fsanitize={kind}"
        obj = bench.compile(FOLDER / "traps.c", "-O1",
                            flags=(flag, "-fno-sanitize-recover=all"))
        program = bench.link([obj, harness], f"traps-{kind}", flags=(flag,))
        for word in words:
            done = tasks.run([program, *([word] if word else [])], timeout=600)
            clean = done.returncode == 0 and "Sanitizer" not in done.stderr \
                and "runtime error" not in done.stderr
            bench.report(clean, f"{flag} finds nothing{' in ' + word if word else ''}",
                         done.stdout, done.stderr)


def fallback(bench):
    """gcc with loops.h pays for the loops of a call-free program what the pass pays."""
    if not shutil.which("gcc"):
        print("# the fallback is not tested: no gcc")
        return
    counted = []
    main = bench.plain(FOLDER / "kernels_main.c")
    for words in (["cc"], ["cc", "--gcc"]):
        obj = bench.folder / f"kernels{len(words)}.o"
        tasks.good([bench.command, *words, "-O2", "-c", FOLDER / "kernels.c", "-o", obj])
        program = bench.link([obj, main], f"kernels{len(words)}")
        counted.append(tasks.good([program]).stdout)
    bench.report(counted[0] == counted[1] and len(counted[0].split("\n")) > 5,
                 "gcc's loops cost what the pass counts", *counted)


def main():
    bench = tasks.Bench(sys.argv[1])
    for part in (traps, thrown, hashes, races, replays, locks, steps, backtrace, sanitizers,
                 fallback):
        part(bench)
    bench.finish()


main()
