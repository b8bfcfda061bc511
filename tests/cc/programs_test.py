#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds programs and whole projects with `janusrt cc`, unchanged, and runs them.

usage: programs_test.py JANUSRT [unittest's arguments]
JANUSRT_CC_MAJORS=19,16,14 in the environment: the versions of clang to use; the default is all
that have a plugin.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = pathlib.Path(sys.argv[1]).resolve()


def run(*words, env=None, **more):
    clean = {k: v for k, v in os.environ.items() if k not in ("CLANG", "GCC", "JANUSRT_OPS")}
    clean.update(env or {})
    more.setdefault("timeout", 300)
    words = [str(word) for word in words]
    return subprocess.run(words, env=clean, capture_output=True, text=True, **more)


def has(major):
    return run(COMMAND, "cc", f"--clang={major}", "--print", "-c", "a.c").returncode == 0


asked = os.environ.get("JANUSRT_CC_MAJORS", "19,16,14").split(",")
MAJORS = [int(major) for major in asked if has(major)]


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def good(self, done):
        self.assertEqual(done.returncode, 0, f"{done.args}\n{done.stdout}{done.stderr}")
        return done.stdout

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def build(self, *words, tool="cc", **more):
        return self.good(run(COMMAND, tool, *words, cwd=self.folder, **more))

    def project(self, name):
        shutil.copytree(HERE / "projects" / name, self.folder / name)
        return self.folder / name

    def test_hello_with_every_clang(self):
        self.write("hello.c", '#include <stdio.h>\nint main(void) { puts("hello"); return 7; }\n')
        for major in MAJORS:
            for level in ("-O0", "-O2"):
                self.build(f"--clang={major}", level, "hello.c", "-o", "hello")
                done = run(self.folder / "hello")
                self.assertEqual((done.returncode, done.stdout), (7, "hello\n"), major)

    def test_several_inputs_of_several_kinds(self):
        self.write("main.c", "int one(void), two(void), three(void), four(void);\n"
                   "int main(void) { return one() + two() + three() + four(); }\n")
        self.write("one.c", "int one(void) { return 1; }\n")
        self.write("two.s", ".globl two\ntwo: mov $2, %eax\n ret\n"
                   '.section .note.GNU-stack,"",@progbits\n')
        self.write("three.c", "int three(void) { return 3; }\n")
        self.write("four.txt", "int four(void) { return 4; }\n")
        self.build("-c", "three.c")
        self.good(run("ar", "rcs", "libthree.a", "three.o", cwd=self.folder))
        self.build("main.c", "one.c", "two.s", "libthree.a", "-x", "c", "four.txt", "-o", "all")
        self.assertEqual(run(self.folder / "all").returncode, 10)

    def test_standard_input_and_output(self):
        text = "int main(void) { int n = 0; for (int i = 0; i < 9; i++) n += i; return n; }\n"
        self.build("-x", "c", "-", "-o", "in", input=text)
        self.assertEqual(run(self.folder / "in").returncode, 36)
        assembly = self.build("-S", "-x", "c", "-", "-o", "-", input=text)
        self.assertIn("janus_", assembly)

    def test_a_static_link(self):
        self.write("main.c", "int main(void) { int n = 0; for (int i = 0; i < 9; i++) n += i;"
                   " return n; }\n")
        self.build("-static", "main.c", "-o", "static")
        self.assertEqual(run(self.folder / "static").returncode, 36)

    def test_a_program_loads_an_instrumented_plugin(self):
        """The program itself has no loop: it must still bring what the plugin's checks need."""
        self.write("plugin.c", "#include <stdlib.h>\n#include <string.h>\n"
                   "static int order(const void *a, const void *b)"
                   " { return *(const int *)a - *(const int *)b; }\n"
                   "unsigned long f(char *t, int n) { int v[3] = {n, 2, 1}; unsigned long s = 0;\n"
                   " for (int i = 0; i < n; i++) s += strlen(t); qsort(v, 3, sizeof v[0], order);\n"
                   " return s + (unsigned long)v[0]; }\n")
        self.write("main.c", "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n"
                   'void *p = dlopen("./plugin.so", RTLD_NOW);\n'
                   'if (!p) { puts(dlerror()); return 1; }\n'
                   'typedef unsigned long function(char *, int);\n'
                   'return (int)((function *)dlsym(p, "f"))("abc", 14); }\n')
        self.build("-O2", "-fPIC", "-shared", "plugin.c", "-o", "plugin.so")
        self.build("-O2", "main.c", "-o", "main", "-ldl")
        done = run(self.folder / "main", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (43, ""))

    def test_the_shared_runtime(self):
        self.write("main.c", "int main(int n, char **v) { (void)v; int s = 0;"
                   " for (int i = 0; i < n * 10; i++) s ^= i * s + 1; return s & 0; }\n")
        self.build("--runtime=shared", "main.c", "-o", "main")
        needed = self.good(run("readelf", "-d", self.folder / "main"))
        self.assertIn("libjanusrt.so", needed)
        tree = COMMAND.parent.parent / "cc/tree.txt"
        folder = dict(line.split("=", 1) for line in tree.read_text().splitlines())["libraries"]
        self.good(run(self.folder / "main", env={"LD_LIBRARY_PATH": folder}))

    def test_exceptions_and_static_locals_of_cxx(self):
        self.write("main.cpp", "#include <cstdio>\n#include <stdexcept>\n#include <vector>\n"
                   "struct V { std::vector<int> v;"
                   " V() { for (int i = 0; i < 5; i++) v.push_back(i); } };\n"
                   "static V &get() { static V v; return v; }\n"
                   "static int f(int n) { int s = 0; for (int i = 0;; i++) { s += i;"
                   " if (i == n) throw s; } }\n"
                   "int main() { try { f((int)get().v.size() * 2); } catch (int s)"
                   " { std::printf(\"%d\\n\", s); } }\n")
        for major in MAJORS:
            self.build(f"--clang={major}", "-O2", "main.cpp", "-o", "main", tool="c++")
            self.assertEqual(self.good(run(self.folder / "main")), "55\n")

    def test_a_plain_make_project(self):
        folder = self.project("make")
        self.good(run("make", "-C", folder, "check", f"CC={COMMAND} cc"))
        self.assertTrue((folder / "main.d").exists())
        # A build in which nothing changed does nothing; a changed header builds again.
        again = self.good(run("make", "-C", folder, f"CC={COMMAND} cc"))
        self.assertNotIn("-c -o", again)
        os.utime(folder / "count.h", (4e9, 4e9))
        self.assertIn("-c -o main.o", run("make", "-n", "-C", folder, f"CC={COMMAND} cc").stdout)

    def test_a_configured_project(self):
        folder = self.project("configure")
        for major in MAJORS:
            self.good(run("./configure", cwd=folder, env={"CC": f"{COMMAND} cc --clang={major}"}))
            self.good(run("make", "-B", "check", cwd=folder))
            symbols = self.good(run("nm", folder / "libgreet.so"))
            self.assertIn("U janus_fuel", symbols)

    def test_a_cmake_project(self):
        folder = self.project("cmake")
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        self.good(run("cmake", *generator, "-S", folder, "-B", folder / "build",
                      "-DCMAKE_BUILD_TYPE=Release",
                      f"-DCMAKE_C_COMPILER={COMMAND.parent / 'janusrt-cc'}",
                      f"-DCMAKE_CXX_COMPILER={COMMAND.parent / 'janusrt-c++'}"))
        self.good(run("cmake", "--build", folder / "build"))
        self.good(run("ctest", "--test-dir", folder / "build"))
        objects = list((folder / "build").rglob("area.c.o"))
        self.assertIn("janus_fuel", self.good(run("nm", objects[0])))

    def test_gcc_pays_for_loops_and_says_what_it_does_not_cover(self):
        self.write("loops.c", "#include <stdio.h>\n#include <janusrt/yield.h>\n"
                   "int main(void) { int n = 0, i; janus_check_or_end(1); "
                   "long before = janus_fuel;\n"
                   "for (i = 0; i < 100; i++) n++;\nwhile (n > 50) n--;\n"
                   "do n--; while (n > 10);\nif (n) for (i = 0; i < 5; i++) {"
                   " if (i == 1) continue; if (i == 3) break; } else n = 1;\n"
                   'long after = janus_fuel; printf("%ld\\n", before - after); return 0; }\n')
        done = run(COMMAND, "cc", "--gcc", "-O2", "-Wall", "-Wextra", "-Werror", "loops.c", "-o",
                   "loops", cwd=self.folder)
        self.good(done)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("calls, goto, recursion, memcpy and locks do not", done.stderr)
        # 100 + 50 + 39 + 4. The first check outside of a task fills the word for good.
        self.assertEqual(int(self.good(run(self.folder / "loops"))), 193)
        self.build("--gcc", "-c", "loops.c")
        linked = run(COMMAND, "cc", "--gcc", "loops.o", "-o", "loops", cwd=self.folder)
        self.assertEqual((linked.returncode, linked.stderr), (0, ""))


if __name__ == "__main__":
    if not MAJORS:
        print(run(COMMAND, "cc", "--print", "-c", "a.c").stderr, end="")
        print("ok 1 - cc/programs_test # SKIP no clang with a plugin")
        sys.exit(77)
    print(f"with clang {', '.join(map(str, MAJORS))}")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
