#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What nobody can count is refused in untrusted code and warned about elsewhere; the report.

usage: trust_test.py PLUGINS
"""
import re
import sys

import build

ALLOW = """# what the test's untrusted code may use
puts   prints
mem*   memory
"""

# name, source, line of the complaint, words of the refusal, words of the warning (None: no warning)
CASES = (
    ("inline assembly",
     "void f(void)\n{\n    __asm__ volatile(\"1: jmp 1b\");\n}\n",
     3, "must not contain inline assembly", "-Wjanus-asm"),
    ("assembly at the top", "__asm__(\".globl x\");\nint f(void) { return 1; }\n",
     0, "must not contain inline assembly", "-Wjanus-asm"),
    ("an empty assembly statement", "void f(int x) { __asm__ volatile(\"\" : \"+r\"(x)); }\n",
     0, None, None),
    ("a thread-local variable",
     "static _Thread_local int mine;\nint f(void)\n{\n    return mine++;\n}\n",
     4, "thread-local data: mine", "another copy of mine [-Wjanus-thread-local]"),
    ("a system call",
     "long syscall(long, ...);\nlong f(void)\n{\n    return syscall(39);\n}\n",
     4, "must not make system calls by syscall", None),
    ("the address of syscall",
     "long syscall(long, ...);\nlong (*f(void))(long, ...)\n{\n    return syscall;\n}\n",
     4, "must not make system calls by syscall", None),
    ("an external off the list",
     "int system(const char *);\nint f(void)\n{\n    return system(\"true\");\n}\n",
     4, "must not use system, which", None),
    ("a variable off the list",
     "extern char **environ;\nchar **f(void)\n{\n    return environ;\n}\n",
     4, "must not use environ, which", None),
    ("a function of the runtime off the list",
     "int janus_authority_take(void *);\nint f(void)\n{\n    return janus_authority_take(0);\n}\n",
     4, "must not use janus_authority_take, which", None),
    ("a definition of a name of the runtime", "int janus_mine(int x)\n{\n    return x;\n}\n",
     1, "must not define janus_mine", None),
    ("the word of the checks",
     "extern _Thread_local long janus_fuel;\nvoid f(void)\n{\n    janus_fuel = 5000;\n}\n",
     4, "must not use the word of the checks", None),
    ("a function without ops",
     "__attribute__((annotate(\"janus.no_ops\")))\nvoid f(void)\n{\n    for (;;) {}\n}\n",
     2, "must not be JANUS_NO_OPS: f", None),
    ("a function that counts itself",
     "__attribute__((annotate(\"janus.own_ops\")))\nvoid f(void)\n{\n    for (;;) {}\n}\n",
     2, "must not be JANUS_OWN_OPS: f", None),
    ("code in a section of data",
     "__attribute__((section(\".text.x\"))) const char code[] = {1};\n",
     0, "must not name a section: code is in .text.x", None),
    ("a constructor", "__attribute__((constructor)) void f(void) {}\n",
     0, "must not have constructors", None),
    ("a function that the loader chooses",
     "static int one(void) { return 1; }\nstatic void *choose(void) { return (void *)one; }\n"
     "int f(void) __attribute__((ifunc(\"choose\")));\n",
     0, "must not choose a function at load time: f", None),
    ("a jump by a built-in",
     "void *to[5];\nvoid f(void)\n{\n    __builtin_longjmp(to, 1);\n}\n",
     4, "must not use the built-in llvm.eh.sjlj.longjmp", None),
    ("externals on the list",
     "int puts(const char *);\nvoid *memchr(const void *, int, unsigned long);\n"
     "int f(const char *s) { return puts(s) + (memchr(s, 1, 2) != 0); }\n", 0, None, None),
)

# name, source, words of the refusal in all code
REFUSED = (
    ("the name of the marks",
     "extern volatile long x __asm__(\"janus.op\");\nvoid f(void) { x = -1; }\n",
     "the name janus.op belongs to the marks"),
    ("a slow path of its own",
     "__attribute__((used)) static void janus_check_stub(long x) { (void)x; }\n",
     "the name janus_check_stub belongs to the runtime"),
    ("a word of its own", "_Thread_local long janus_fuel = 1l << 62;\n",
     "the name janus_fuel belongs to the runtime"),
    ("a wrapper of its own", "unsigned long janus_cc_strlen(const char *s) { return s[0]; }\n",
     "the name janus_cc_strlen belongs to the runtime"),
    ("the address of setjmp",
     "#include <setjmp.h>\nint (*f(void))(jmp_buf) { return _setjmp; }\n",
     "the address of _setjmp must not be taken"),
)

REPORTED = """extern int other(int);
extern void *memchr(const void *, int, unsigned long);
int sum(const int *v, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}
int few(const int *v)
{
    int s = 0;
    for (int i = 0; i < 500; i++) s += v[i];
    return s;
}
int length(const char *s)
{
    int n = 0;
    while (s[n]) n++;
    return n;
}
int calls(int n) { return other(n) + (memchr(&n, 1, 4) != 0); }
"""
EXPECTED = """external\tother\tx.c:21\tunknown
external\tmemchr\tx.c:21\tknown
function\tsum\tx.c:3\tmarks 1\tfolded 0\tstripped 1\tregister 1\tquick 0
function\tfew\tx.c:9\tmarks 1\tfolded 1\tstripped 0\tregister 0\tquick 0
function\tlength\tx.c:15\tmarks 1\tfolded 0\tstripped 0\tregister 1\tquick 0
function\tcalls\tx.c:21\tmarks 2\tfolded 0\tstripped 0\tregister 0\tquick 1
"""


def tell(bench, major, source, words):
    path = bench.path("x.c")
    path.write_text(source)
    return build.run(
        [f"clang-{major}", "-O2", "-g", f"-fpass-plugin={bench.plugins}/janusrt_ops_{major}.so",
         "-c", path, "-o", bench.path("x.o")], False, {"JANUSRT_OPS": words})


def judge(bench, major):
    allow = bench.path("allow.txt")
    allow.write_text(ALLOW)
    for name, source, line, refusal, warning in CASES:
        done = tell(bench, major, source, f"verify,untrusted,allow={allow}")
        if refusal is None:
            good = done.returncode == 0 and done.stderr == ""
        else:
            place = f"x.c:{line}:" if line else "x.c"
            good = done.returncode == 1 and refusal in done.stderr and place in done.stderr
        bench.report(good, f"clang {major} judges {name} in untrusted code", done.stderr)
        done = tell(bench, major, source, "verify")
        good = done.returncode == 0 and (warning in done.stderr if warning else done.stderr == "")
        bench.report(good, f"clang {major} judges {name} in other code", done.stderr)
        done = tell(bench, major, source, "nowarn=asm,nowarn=thread-local")
        bench.report(done.returncode == 0 and done.stderr == "",
                     f"clang {major} is quiet about {name} if asked", done.stderr)


def refuse(bench, major):
    for name, source, words in REFUSED:
        done = tell(bench, major, source, "verify,nowarn=thread-local")
        bench.report(done.returncode == 1 and words in done.stderr,
                     f"clang {major} refuses {name}", done.stderr)


def main():
    bench = build.Bench(sys.argv[1])
    for major in bench.majors:
        judge(bench, major)
        refuse(bench, major)
        done = tell(bench, major, "int x;\n", "untrusted,allow=/no/such/file")
        bench.report(done.returncode == 1 and "/no/such/file" in done.stderr,
                     f"clang {major} reports a list that it cannot read", done.stderr)
        done = tell(bench, major, "int x;\n", "verify,nonsense")
        bench.report(done.returncode == 1 and '"nonsense"' in done.stderr,
                     f"clang {major} refuses a word that it does not know", done.stderr)
        report = bench.path(f"report.{major}")
        tell(bench, major, REPORTED, f"report={report}")
        text = re.sub(r"\t[^\t]*/x\.c", "\tx.c", report.read_text())
        bench.report(text == EXPECTED, f"clang {major} reports folds, strips, registers, externals",
                     *text.split("\n"))
    bench.finish()


main()
