#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ways out of `janusrt cc --untrusted`: sources and build lines that would run code without checks.
Each is refused, or keeps its checks.

usage: escape_test.py JANUSRT
"""
import os
import shutil
import sys

import tasks

LOOP = "volatile int v;\nvoid f(void)\n{\n    for (;;) v++;\n}\n"

# name, source, words of the refusal, flags
SOURCES = (
    ("a constructor by a pragma",
     "static void f(void) { for (;;) {} }\n#pragma clang section rodata=\".init_array\"\n"
     "void (*const table[1])(void) = {f};\n", "table is in .init_array"),
    ("machine code by a pragma",
     "#pragma clang section rodata=\".text.x\"\nconst unsigned char code[] = {0xeb, 0xfe};\n",
     "code is in .text.x"),
    ("code of the loader by a pragma",
     "#pragma clang section text=\".init\"\nvoid f(void) {}\n", "f is in .init"),
    ("a library by a pragma", "#pragma comment(lib, \"/x.a\")\nvoid f(void) {}\n",
     "name a library for the linker"),
    ("the function that the loader calls", "void _init(void) { for (;;) {} }\n", "define _init"),
    ("a division that divides",
     "typedef unsigned __int128 wide;\n"
     "wide __udivti3(wide a, wide b) { return a / b; }\n", "define __udivti3"),
    ("a static division that divides",
     "typedef unsigned __int128 wide;\n"
     "__attribute__((used)) static wide __udivti3(wide a, wide b)\n{\n    return a / b;\n}\n",
     "define __udivti3"),
    ("a static function that a built-in calls",
     "static double sin(double x) { return __builtin_sin(x); }\n"
     "double f(double x) { return sin(x); }\n", "define sin", "-fno-math-errno"),
    ("memcpy that copies",
     "struct s { char x[56]; };\nvoid *memcpy(void *to, const void *from, unsigned long n)\n"
     "{\n    *(struct s *)to = *(const struct s *)from;\n    return n ? to : 0;\n}\n",
     "define memcpy"),
    ("a function of the C library", "long read(int a, void *b, unsigned long c)\n"
     "{\n    return a + (b != 0) + (long)c;\n}\n", "define read"),
    ("another version of a function",
     "int f(void) __asm__(\"read@@V\");\nint f(void) { return 1; }\n", "define read@@V"),
    ("an alias of a name", "static int f(void) { return 1; }\n"
     "int g(void) __attribute__((alias(\"f\"))) __asm__(\"getrandom\");\n", "define getrandom"),
    ("a lock of the wrappers", "int janus_cc_pthread_mutex_lock(void *);\nstatic long lock[9];\n"
     "int f(void) { return janus_cc_pthread_mutex_lock(lock); }\n",
     "use janus_cc_pthread_mutex_lock"),
    ("a wrapper that allocates", "char *janus_cc_strdup(const char *);\n"
     "char *f(const char *s) { return janus_cc_strdup(s); }\n", "use janus_cc_strdup"),
    ("the slow path",
     "void janus_check_stub(unsigned long);\nvoid f(void) { janus_check_stub(1); }\n",
     "use janus_check_stub"),
    ("a forged exception", "void _Unwind_Resume(void *);\nvoid f(void *p) { _Unwind_Resume(p); }\n",
     "use _Unwind_Resume"),
    ("an external of another name", "int f(const char *) __asm__(\"system\");\n"
     "int g(void) { return f(\"x\"); }\n", "use system"),
    ("an external by a weak reference",
     "static int f(const char *) __attribute__((weakref(\"system\")));\n"
     "int g(void) { return f(\"x\"); }\n", "use system"),
    ("an external by a pragma", "#pragma redefine_extname f system\nint f(const char *);\n"
     "int g(void) { return f(\"x\"); }\n", "use system"),
    ("versions that the loader chooses among",
     "__attribute__((target_clones(\"avx2\", \"default\"))) int f(int x) { return x * x; }\n",
     "untrusted code must not"),
    ("a handler of interrupts",
     "struct frame;\n__attribute__((interrupt)) void f(struct frame *x) { (void)x; }\n",
     "handle interrupts"),
    ("the stack pointer",
     "register unsigned long sp __asm__(\"rsp\");\nvoid f(unsigned long x) { sp = x; }\n",
     "use the built-in llvm.write_register"),
    ("the thread's memory by its segment",
     "typedef long __attribute__((address_space(257))) word;\n"
     "void f(long at) { *(word *)at = 5000; }\n", "use address spaces"),
    ("the thread's memory by its pointer",
     "void f(long at) { *(long *)((char *)__builtin_thread_pointer() + at) = 5000; }\n",
     "use the built-in llvm.thread.pointer"),
    ("registers that tasks share",
     "#include <mmintrin.h>\n__m64 x;\nvoid f(void) { x = _mm_add_pi8(x, x); }\n", "use MMX"),
    ("memory that no budget pays for",
     "char x[15 << 20], y[2 << 20];\nchar f(long i) { return x[i] = y[i] = 1; }\n",
     "have more than 16 MiB of variables"),
    ("memory that is cleared for one op",
     "void *janus_alloc_zeroed(unsigned long, unsigned long);\n"
     "void *f(void) { return janus_alloc_zeroed(1, 1 << 24); }\n", "use janus_alloc_zeroed"),
    ("a volatile copy of a gigabyte",
     "struct s { char x[1 << 30]; };\nvolatile struct s *p, *q;\nvoid f(void) { *p = *q; }\n",
     "copy more than 64 KiB of volatile data"),
)
X86 = ("a handler of interrupts", "the stack pointer", "registers that tasks share",
       "the thread's memory by its segment", "versions that the loader chooses among",
       "the thread's memory by its pointer")
FINE = """#include <stdint.h>
#include <string.h>
static int error(int x) { return x + 1; }
typedef unsigned __int128 wide;
struct s { char x[40]; };
int getting(struct s *to, const struct s *from, wide a, wide b)
{
    *to = *from;
    return error((int)(a / b)) + (int)strlen(to->x);
}
"""

# A build line that would leave the checks out. {folder} has loop.c and other files.
LINES = (
    ("-Wp,-disable-llvm-passes",), ("-Xpreprocessor", "-disable-llvm-passes"),
    ("--config-user-dir={folder}/config",), ("--config-system-dir={folder}/config",),
    ("--driver-mode=cl",), ("--driver-mode=cpp",), ("@{folder}/utf8",), ("@{folder}/utf16",),
    ("@{folder}/empty",), ("--rsp-quoting=windows", "@{folder}/quoted"),
    ("-mllvm=-force-attribute=f:naked",), ("-Xarch_host", "-fplugin={folder}/x.so"),
    ("-fsanitize-coverage=trace-pc-guard",), ("-finstrument-functions",), ("-pg",),
    ("-fpatchable-function-entry=2",), ("-fsplit-stack",), ("-mretpoline-external-thunk",),
    ("-nostartfiles",), ("--for-linker={folder}/plain.o",), ("-fopenmp",), ("-fblocks",),
    ("-fmodules",), ("-ffast-math",), ("-Ofast",), ("--library-directory={folder}",),
    ("--allow={folder}/all",), ("--runtime-dir={folder}",),
)
BOTH = LINES[:10]  # also without --untrusted


def write_files(folder):
    lost = "-Xclang -disable-llvm-passes"
    (folder / "loop.c").write_text(LOOP)
    (folder / "all").write_text("*\n")
    (folder / "config").mkdir()
    for name in ("clang.cfg", "x86_64-pc-linux-gnu-clang.cfg", "x86_64-pc-linux-gnu.cfg"):
        (folder / "config" / name).write_text(lost + "\n")
    (folder / "utf8").write_bytes(b"\xef\xbb\xbf" + lost.encode())
    (folder / "utf16").write_bytes(lost.encode("utf-16"))
    (folder / "empty").write_text(f'-I "" -I {lost}')
    (folder / "quoted").write_text(f"'-DX= {lost} '")


def has_checks(path):
    return "janus_check_stub" in tasks.run(["nm", path]).stdout


def try_source(bench, major, case):
    name, source, words, *flags = case
    path, output = bench.folder / "x.c", bench.folder / "x.o"
    path.write_text(source)
    done = tasks.run([bench.command, "cc", "--untrusted", f"--clang={major}", "-O2", "-w", "-g",
                      *flags, "-c", path, "-o", output])
    bench.report(done.returncode == 1 and words in done.stderr and not output.exists(),
                 f"clang {major} refuses {name}", done.stderr)
    output.unlink(missing_ok=True)


def try_line(bench, line, untrusted):
    output = bench.folder / "x.o"
    words = [word.format(folder=bench.folder) for word in line]
    first = ["--untrusted"] if untrusted else []
    done = tasks.run([bench.command, "cc", *first, "-w", "-O1", *words, "-c",
                      bench.folder / "loop.c", "-o", output])
    good = not output.exists() or (has_checks(output) and not untrusted)
    said = " ".join(line).replace("{folder}/", "")
    bench.report(good, f"{said} does not leave the checks out"
                 + (" of untrusted code" if untrusted else ""), done.stderr)
    output.unlink(missing_ok=True)


def try_link(bench, name, *words, env=None):
    """No plain code gets into a plugin."""
    output = bench.folder / "x.so"
    tasks.run([bench.command, "cc", "--untrusted", "-w", "-shared", "-fPIC",
               bench.folder / "loop.c", *words, "-o", output], env)
    symbols = tasks.run(["nm", output]).stdout if output.exists() else ""
    bench.report("plain_code" not in symbols, f"a plugin does not get code by {name}", symbols)
    output.unlink(missing_ok=True)


def try_links(bench):
    folder = bench.folder
    (folder / "plain.c").write_text("void plain_code(void) { for (;;) {} }\n")
    tasks.good([f"clang-{bench.majors[0]}", "-fPIC", "-c", folder / "plain.c", "-o",
                folder / "plain.o"])
    script = f"INPUT({folder}/plain.o)\n"
    (folder / "script.o").write_text(script)
    (folder / "libm.so").write_text(script)
    fortran = "! a comment\nsubroutine plain_code()\nend subroutine\n"
    (folder / "plain.F90").write_text(fortran)
    (folder / "archive.F90").write_text("!<arch>\n" + fortran)
    linker = folder / "ld"
    linker.write_text(f"#!/bin/sh\nexec {shutil.which('ld')} \"$@\" {folder}/plain.o\n")
    linker.chmod(0o755)
    try_link(bench, "an object of another compiler", folder / "plain.o")
    try_link(bench, "a script of the linker", folder / "script.o")
    try_link(bench, "LIBRARY_PATH", "-lm", env={"LIBRARY_PATH": str(folder)})
    try_link(bench, "COMPILER_PATH", env={"COMPILER_PATH": str(folder)})
    try_link(bench, "another language", folder / "plain.F90")
    try_link(bench, "another language that looks like an archive", folder / "archive.F90")
    listing = tasks.run([bench.command, "cc", "--untrusted", "-shared", "--print", "-x", "none",
                         folder / "x.dat", "-o", "x.so"])
    bench.report(listing.returncode == 1, "a file of an unknown kind is refused", listing.stderr)


def main():
    bench = tasks.Bench(sys.argv[1])
    machine = os.uname().machine
    for major in bench.majors:
        for case in SOURCES:
            if machine == "x86_64" or case[0] not in X86:
                try_source(bench, major, case)
        path = bench.folder / "fine.c"
        path.write_text(FINE)
        done = tasks.run([bench.command, "cc", "--untrusted", f"--clang={major}", "-O2", "-Wall",
                          "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-g", "-c", path, "-o",
                          bench.folder / "fine.o"])
        bench.report(done.returncode == 0 and done.stderr == "",
                     f"clang {major} takes code with names of its own", done.stderr)
    write_files(bench.folder)
    for line in LINES:
        try_line(bench, line, True)
    for line in BOTH:
        try_line(bench, line, False)
    try_links(bench)
    bench.finish()


main()
