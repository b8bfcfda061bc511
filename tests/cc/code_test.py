#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the emitted code looks like: checks, thread pointers, vectors, jumps, distances.

usage: code_test.py PLUGINS
"""
import re
import shutil
import sys

import build

KERNELS = build.HERE / "kernels"
PACKED = re.compile(r"\b[pv]?v?(?:add|mul|sub|padd|pmul|pmulu)(?:ps|pd|d|q|dq|ld|udq)\b")
STRAIGHT_MAX = 16384  # ops that one payment may cover, but for those that the source asks for
OPCODES = 64


def disassemble(tool, path):
    """The instructions, each as (mnemonic, operands)."""
    text = build.run([tool, "-d", "--no-show-raw-insn", path]).stdout
    rows = re.findall(r"^\s+[0-9a-f]+:\t(\S+)[ \t]*(.*)$", text, re.M)
    return [(name, rest.strip()) for name, rest in rows]


def plain(bench, major, source, output, level="-O2"):
    build.run([f"clang-{major}", level, "-w", "-c", source, "-o", output])
    return output


def check_x86(bench, major):
    faults, checks = [], 0
    for source in sorted(KERNELS.glob("*.c")):
        output = bench.path("x.o")
        bench.compile(build.Build(major, "-O2"), source, output)
        rows = disassemble("objdump", output)
        for (name, rest), (after, _) in zip(rows, rows[1:]):
            if re.search(r"%fs:0x0\b,%r", rest) and not rest.startswith("$") and name == "lea":
                faults.append(f"{source.name}: {name} {rest}")
            if name.startswith("sub") and "%fs:" in rest and rest.startswith("$"):
                checks += 1
                if after not in ("jb", "jae"):
                    faults.append(f"{source.name}: {name} {rest}, then {after}")
    bench.report(not faults and checks > 20,
                 f"clang {major}: a check is one subtraction and one branch", *faults)


def check_arm(bench, major):
    faults, accesses = [], 0
    for source in sorted(KERNELS.glob("*.c")):
        output = bench.path("a.o")
        bench.compile(build.Build(major, "-O2", "", build.ARM), source, output)
        rows = disassemble(f"{build.ARM}-objdump", output)
        for at, (name, rest) in enumerate(rows):
            if name != "mrs" or "tpidr_el0" not in rest:
                continue
            accesses += 1
            register = rest.split(",")[0]
            used = [row for row in rows[at + 1 : at + 5] if f"[{register}" in row[1]]
            calls = [row for row in rows[at + 1 : at + 5] if row[0] in ("bl", "blr")]
            first_call = rows.index(calls[0], at) if calls else at + 5
            if not used or rows.index(used[0], at) > first_call:
                faults.append(f"{source.name}: {rest} is kept")
    bench.report(not faults and accesses > 20,
                 f"clang {major}: no thread pointer lives longer than an access, aarch64", *faults)


def check_vectors(bench, major):
    for kernel in ("matmul", "sum"):
        source = KERNELS / f"{kernel}.c"
        bench.compile(build.Build(major, "-O2"), source, bench.path("v.o"))
        counts = [sum(bool(PACKED.fullmatch(name)) for name, _ in disassemble("objdump", path))
                  for path in (plain(bench, major, source, bench.path("p.o")), bench.path("v.o"))]
        bench.report(counts[1] >= counts[0] > 0,
                     f"clang {major}: the vector loops of {kernel} stay vector loops",
                     f"packed instructions without the pass {counts[0]}, with it {counts[1]}")
    source = bench.path("idiom.c")
    source.write_text("void f(char *p, long n) { for (long i = 0; i < n; i++) p[i] = 0; }\n")
    bench.compile(build.Build(major, "-O2"), source, bench.path("i.o"))
    names = build.run(["nm", "-u", bench.path("i.o")]).stdout
    bench.report("memset" in names, f"clang {major}: a loop that fills memory becomes memset",
                 names)


def endless():
    """An interpreter with many opcodes, whose program never ends."""
    code = ", ".join(map(str, range(OPCODES)))
    lines = [f"static const unsigned char code[{OPCODES}] = {{{code}}};",
             "static volatile unsigned sink;",
             "int main(void)\n{",
             "    unsigned at = 0;",
             "    static const void *const handlers[] = {"
             + ", ".join(f"&&h{i}" for i in range(OPCODES)) + "};",
             "    goto *handlers[code[at]];"]
    lines += [f"h{i}: sink {'+-^|'[i % 4]}= {i}; goto *handlers[code[++at % {OPCODES}]];"
              for i in range(OPCODES)]
    return "\n".join([*lines, "}", ""])


def check_jumps(bench, major):
    source, output = bench.path("endless.c"), bench.path("e.o")
    source.write_text(endless())
    counts = []
    for words in (None, ""):
        if words is None:
            plain(bench, major, source, output)
        else:
            bench.compile(build.Build(major, "-O2"), source, output)
        counts.append(sum(name.startswith("jmp") and rest.startswith("*")
                          for name, rest in disassemble("objdump", output)))
    bench.report(counts[1] >= counts[0],
                 f"clang {major}: each handler of an interpreter still jumps",
                 f"indirect jumps without the pass {counts[0]}, with it {counts[1]}")
    for level in ("-O0", "-O2"):
        one = build.Build(major, level)
        bench.compile(one, source, output)
        bench.link(one, [output, build.HERE / "counting.c"], bench.path("endless"))
        done = bench.execute(one, bench.path("endless"), env={"COUNT_BUDGET": "10007"},
                             check=False)
        bench.report(done.stdout == "exhausted after 10007\n",
                     f"clang {major} {level}: an interpreter of {OPCODES} opcodes is stopped",
                     f"exit {done.returncode}, {done.stdout}")


def check_unpaid(bench, major):
    """With -flto=thin the payments would be made at the link, where the plugin is missing."""
    source, output = bench.path("u.c"), bench.path("u.o")
    source.write_text("int main(int n, char **v) { while (n-- > 0) v++; return 0; }\n")
    bench.compile(build.Build(major, "-O2"), source, output, ["-flto=thin"])
    # What a linker does with such an object: it makes machine code without the plugin.
    build.run([f"clang-{major}", "-O2", "-x", "ir", "-c", output, "-o", bench.path("v.o")])
    links = [[bench.path("v.o")]]
    if shutil.which(f"ld.lld-{major}"):
        links.append(["-flto=thin", f"-fuse-ld=lld-{major}", output])
    for words in links:
        done = build.run([f"clang-{major}", *words, build.HERE / "counting.c", "-o",
                          bench.path("u")], False)
        bench.report(done.returncode != 0 and "janus.op" in done.stderr,
                     f"clang {major}: a mark that nobody paid fails the link, {len(words)} words",
                     done.stderr)


def check_distance(bench, major):
    """With slices of one op every payment takes the slow path, and tells its size."""
    one, objects = build.Build(major, "-O2"), []
    for source in sorted(KERNELS.glob("*.c")):
        objects.append(bench.path(f"d.{source.stem}.o"))
        bench.compile(one, source, objects[-1],
                      ["-DKERNEL_SHORT", f"-Dkernel=kernel_{source.stem}"])
    bench.link(one, [*objects, build.HERE / "kernels_main.c", build.HERE / "counting.c"],
               bench.path("d"), ["-lm"])
    done = bench.execute(one, bench.path("d"), env={"COUNT_SLICE": "1", "COUNT_DISTANCE": "1"})
    largest = int(done.stderr.split()[-1])
    bench.report(0 < largest <= STRAIGHT_MAX,
                 f"clang {major}: no payment of a kernel covers more than {STRAIGHT_MAX} ops",
                 f"the largest covers {largest}")


def main():
    bench = build.Bench(sys.argv[1])
    for major in bench.majors:
        check_x86(bench, major)
        check_vectors(bench, major)
        check_jumps(bench, major)
        check_unpaid(bench, major)
        check_distance(bench, major)
        if bench.arm:
            check_arm(bench, major)
    bench.finish()


main()
