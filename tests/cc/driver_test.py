#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the driver `janusrt cc`: how it finds clang, what it adds, and what it leaves alone.

usage: driver_test.py JANUSRT LIBDIR DATADIR [unittest's arguments]
JANUSRT is the command in the build tree, LIBDIR and DATADIR are relative to a prefix.
"""

import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = pathlib.Path(sys.argv[1]).resolve()
LIBDIR, DATADIR = sys.argv[2], sys.argv[3]

FAKE_CLANG = """#!/bin/sh
[ "$1" = --version ] && {{ echo "Some {kind} version {version} (1)"; exit 0; }}
echo "clang {version}: $*"
"""
HELLO = """#include <stdio.h>
int main(void) { int sum = 0; for (int i = 0; i < 10; i++) sum += i; printf("%d\\n", sum); }
"""


def run(*words, env=None, **more):
    clean = {k: v for k, v in os.environ.items() if k not in ("CLANG", "GCC", "JANUSRT_OPS")}
    clean.update(env or {})
    more.setdefault("stdin", None if "input" in more else subprocess.DEVNULL)
    if more["stdin"] is None:
        del more["stdin"]
    words = [str(word) for word in words]
    return subprocess.run(words, env=clean, capture_output=True, text=True, **more)


def cc(*words, **more):
    return run(COMMAND, "cc", *words, **more)


def plan(*words, **more):
    """The words of the command that would run."""
    done = cc("--print", *words, **more)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return shlex.split(done.stdout)


def libraries(words):
    return [pathlib.Path(w).name for w in words if w.endswith(".a") and "janusrt" in w]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def refused(self, done, *parts):
        """One line, the driver's name in front, and the status that clang has for bad usage."""
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, r"^janusrt c(c|\+\+): ")
        for part in parts:
            self.assertIn(part, done.stderr)


class FindsClang(Folder):
    """In an installed tree of its own, with clangs that only say who they are."""

    def setUp(self):
        super().setUp()
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        self.command = prefix / "bin/janusrt"
        shutil.copy(COMMAND, self.command)
        self.plugins = prefix / LIBDIR / "janusrt"
        self.plugins.mkdir(parents=True)
        self.path = self.folder / "path"
        self.path.mkdir()
        self.write(f"prefix/{DATADIR}/janusrt/untrusted.txt", "")

    def clang(self, name, version, kind="clang"):
        path = self.path / name
        path.write_text(FAKE_CLANG.format(version=version, kind=kind))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def plugin(self, major):
        (self.plugins / f"janusrt_ops_{major}.so").touch()

    def call(self, *words, env=None):
        # /bin for sh; Debian's clang is in /usr/bin, which may be the same folder.
        return run(self.command, "cc", *words, env={"PATH": str(self.path), **(env or {})})

    def test_says_which_package_is_missing_without_clang(self):
        self.refused(self.call("-c", "a.c"), "install the package clang-19")
        self.refused(self.call("--clang=14", "-c", "a.c"), "install the package clang-14")

    def test_prefers_19_then_16_then_14(self):
        for major in (14, 16, 19):
            self.clang(f"clang-{major}", f"{major}.0.6")
            self.plugin(major)
            done = self.call("-c", "a.c")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith(f"clang {major}.0.6: "), done.stdout)
            self.assertIn(f"-fpass-plugin={self.plugins.resolve()}/janusrt_ops_{major}.so",
                          done.stdout)

    def test_takes_the_version_that_was_asked_for(self):
        for major in (16, 19):
            self.clang(f"clang-{major}", f"{major}.1.0")
            self.plugin(major)
        self.assertIn("clang 16.1.0: ", self.call("--clang=16", "-c", "a.c").stdout)
        self.refused(self.call("--clang=15", "-c", "a.c"), "19, 16 and 14 only")
        self.refused(self.call("--clang=x", "-c", "a.c"), "--clang=x")

    def test_takes_a_clang_without_a_number_if_it_is_known(self):
        self.clang("clang", "16.0.6")
        self.plugin(16)
        self.assertIn("clang 16.0.6: ", self.call("-c", "a.c").stdout)
        self.clang("clang", "17.0.1")
        self.refused(self.call("-c", "a.c"), "install the package clang-19")

    def test_checks_the_version_of_a_named_clang(self):
        self.plugin(19)
        mine = self.clang("mine", "19.1.7")
        self.assertIn("clang 19.1.7: ", self.call("-c", "a.c", env={"CLANG": str(mine)}).stdout)
        self.clang("mine", "20.1.0")
        self.refused(self.call("-c", "a.c", env={"CLANG": "mine"}), "clang 20", "19, 16 and 14")
        self.refused(self.call("-c", "a.c", env={"CLANG": "/no/clang"}), "no such command")
        self.clang("mine", "19.1.7")
        self.refused(self.call("--clang=16", "-c", "a.c", env={"CLANG": "mine"}), "--clang=16")
        self.clang("mine", "19.1.0", kind="gcc")
        self.refused(self.call("-c", "a.c", env={"CLANG": "mine"}), "CLANG=mine: it is not clang")

    def test_refuses_a_name_that_lies(self):
        self.clang("clang-19", "15.0.7")
        self.plugin(19)
        self.refused(self.call("-c", "a.c"), "not clang 19 but 15")

    def test_says_what_is_missing_without_a_plugin(self):
        self.clang("clang-19", "19.1.7")
        self.refused(self.call("-c", "a.c"), "janusrt_ops_19.so", "janusrt-cc", "llvm-19-dev")
        self.clang("clang-16", "16.0.6")
        self.plugin(16)  # both parts are there
        self.assertIn("clang 16.0.6: ", self.call("-c", "a.c").stdout)

    def test_says_which_library_is_missing(self):
        self.clang("clang-19", "19.1.7")
        self.plugin(19)
        self.refused(self.call("a.c"), "libjanusrt_cc.a is missing", "--runtime-dir")

    def test_works_under_names_without_a_space(self):
        self.clang("clang-19", "19.1.7")
        self.plugin(19)
        for name, mode in (("janusrt-cc", False), ("janusrt-c++", True)):
            link = self.command.parent / name
            link.symlink_to("janusrt")
            done = run(link, "-c", "a.c", env={"PATH": str(self.path)})
            self.assertEqual("--driver-mode=g++" in done.stdout, mode, done.stdout)
            self.assertIn("-c a.c", done.stdout)

    def test_gives_the_status_of_clang(self):
        self.clang("clang-19", "19.1.7").write_text(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo clang version 19.1.7 && exit\nexit 37\n")
        self.plugin(19)
        self.assertEqual(self.call("-c", "a.c").returncode, 37)
        self.assertEqual(self.call("-c", "a.c", "--report").returncode, 37)

    def test_sets_the_words_of_the_pass_and_no_others(self):
        self.clang("clang-19", "19.1.7").write_text(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo clang version 19.1.7 && exit\n"
            "echo \"${JANUSRT_OPS-none}\"\n")
        self.plugin(19)
        self.assertEqual(self.call("-c", "a.c", env={"JANUSRT_OPS": "x"}).stdout, "wrap\n")
        words = self.call("-c", "a.c", "-Wno-janus-asm", "--runtime=shared").stdout
        self.assertEqual(words, "wrap,shared,nowarn=asm\n")
        words = self.call("-c", "a.c", "-w", "-Wjanus-asm").stdout
        self.assertEqual(words, "wrap,nowarn=thread-local\n")
        words = self.call("-c", "a.c", "--untrusted", "--report=/r", "--ops=verify,off=fold").stdout
        self.assertRegex(words, r"^wrap,verify,off=fold,untrusted,allow=.*/untrusted.txt,report=/r")
        self.refused(self.call("-c", "a.c", "--report=a,b"), "comma")
        self.refused(self.call("-c", "a.c", "--allow=/no/list", "--untrusted"), "/no/list")


class Plans(Folder):
    """What the driver adds, as --print shows it. The build tree has the plugin."""

    def test_adds_the_runtime_to_programs_only(self):
        runtime = ["libjanusrt_cc.a", "libjanusrt.a"]
        for words in (["a.c"], ["a.o", "b.o", "-o", "a"], ["-x", "c", "-"], ["-lm", "a.o"],
                      ["-static", "a.o"], ["-MD", "a.c"], ["-MMD", "-MF", "a.d", "a.c"],
                      ["-Wl,--version"], ["-pie", "a.s"], ["a.c", "-Wp,-DA"],
                      ["-save-temps", "a.c"]):
            self.assertEqual(libraries(plan(*words)), runtime, words)
        for words in ([], ["-v"], ["--version"], ["-c", "a.c"], ["a.c", "-c"], ["-S", "a.c"],
                      ["-E", "a.c"], ["-M", "a.c"], ["-MM", "a.c"], ["-fsyntax-only", "a.c"],
                      ["-r", "a.o", "-o", "b.o"], ["a.h"], ["-x", "c-header", "a"],
                      ["-print-file-name=libc.a"], ["-o", "a.c"], ["-include", "a.c"],
                      ["-nostdlib", "a.o"], ["--runtime=none", "a.o"], ["--analyze", "a.c"],
                      ["-dM", "-E", "-"]):
            self.assertEqual(libraries(plan(*words)), [], words)

    def test_a_shared_object_gets_the_wrappers_only(self):
        self.assertEqual(libraries(plan("-shared", "a.o")), ["libjanusrt_cc.a"])
        self.assertNotIn("-lpthread", plan("-shared", "a.o"))
        self.assertIn("-ljanusrt", plan("-shared", "--runtime=shared", "a.o"))
        self.assertIn("-ljanusrt", plan("--runtime=shared", "a.o"))
        self.assertNotIn("libjanusrt.a", libraries(plan("--runtime=shared", "a.o")))

    def test_a_program_brings_what_the_wrappers_of_plugins_need(self):
        words = plan("a.o")
        archive = next(w for w in words if w.endswith("libjanusrt_cc.a"))
        listed = run("nm", "-u", archive).stdout.split()
        needed = {name for name in listed if name.startswith("janus_")}
        needed -= {name for name in needed if name.startswith("janus_cc_")}
        self.assertIn("janus_op", needed)
        for name in needed:
            self.assertIn(f"-Wl,-u,{name}", words)

    def test_values_of_options_are_not_inputs(self):
        for option in ("-o", "-x", "-I", "-D", "-U", "-L", "-MF", "-MT", "-MQ", "-include",
                       "-isystem", "-idirafter", "-Xclang", "-mllvm", "-target", "--param"):
            value = "x86_64-linux-gnu" if option == "-target" else "a.c"
            self.assertEqual(libraries(plan(option, value)), [], option)

    def test_leaves_the_users_words_as_they_are(self):
        words = ["-DX=\"a b\"", "-I", "in c", "-Wl,-z,now", "-Wa,--noexecstack", "-O3", "-Xlinker",
                 "--print", "-c", "it's.c", "-o", "$out", "-Wno-all", "-MD"]
        got = plan(*words)
        at = got.index("--end-no-unused-arguments") + 1
        self.assertEqual(got[at:], words)

    def test_reads_response_files(self):
        inner = self.write("inner", "-c 'a file.c'\n-DX=\\\"y\\\"")
        outer = self.write("outer", f"-O2\n@{inner}\n")
        self.assertEqual(libraries(plan(f"@{outer}")), [])
        self.assertEqual(plan(f"@{outer}")[-1], f"@{outer}")  # clang reads it itself
        self.write("inner", "'a file.c'")
        self.assertEqual(len(libraries(plan(f"@{outer}"))), 2)
        self.assertEqual(len(libraries(plan("@/no/such/file"))), 2)  # then it is an input
        self.write("outer", f"@{outer}")
        self.refused(cc("--print", f"@{outer}"), "nested deeper")
        self.write("outer", "-flto a.c")
        self.refused(cc("--print", f"@{outer}"), "-flto")
        self.write("outer", "'\\'' -flto '.c")  # clang takes backslashes in all quotes
        self.refused(cc("--print", f"@{outer}"), "-flto")

    def test_dashes_end_the_options(self):
        self.assertEqual(plan("-c", "--", "--print")[-2:], ["--", "--print"])
        got = plan("--", "a.o", "-weird.o")
        self.assertNotIn("--", got)
        self.assertLess(got.index("./-weird.o"), got.index("-lpthread"))

    def test_the_command_that_it_prints_is_the_one_that_runs(self):
        source = self.write("a b.c", HELLO)
        shown = cc("--print", "-S", source, "-o", self.folder / "it's.s").stdout
        subprocess.run(shown, shell=True, check=True)
        done = cc("-S", source, "-o", self.folder / "direct.s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "it's.s").read_text(),
                         (self.folder / "direct.s").read_text())

    def test_refuses_what_would_lose_checks(self):
        self.refused(cc("-flto", "a.c"), "-flto")
        self.refused(cc("-flto=thin", "-c", "a.c"), "-flto")
        self.refused(cc("-fno-lto", "-flto", "a.c"), "-flto")
        self.assertIn("-flto", plan("-flto", "-fno-lto", "-c", "a.c"))
        self.refused(cc("-m32", "-c", "a.c"), "64-bit")
        self.refused(cc("-cc1", "a.c"), "inner command")
        self.refused(cc("-Xclang", "-disable-llvm-passes", "-c", "a.c"), "no check")
        self.refused(cc("-flegacy-pass-manager", "-c", "a.c"), "old pass manager")
        self.refused(cc("--target=riscv64-linux-gnu", "-c", "a.c"), "riscv64")
        self.refused(cc("--target=aarch64-linux-gnu", "a.c"), "--runtime-dir")
        self.assertIn("-c", plan("--target=aarch64-linux-gnu", "-c", "a.c"))

    def test_refuses_options_without_sense(self):
        self.refused(cc("--runtime=some", "a.c"), "--runtime=some")
        self.refused(cc("--runtime-dir=/no/such", "a.o"), "/no/such/libjanusrt_cc.a")
        self.refused(cc("--allow=x", "-c", "a.c"), "--untrusted")
        self.refused(cc("--audit"), "object files")
        self.refused(cc("--report-of"), "one file")
        self.refused(cc("--report-of", __file__), "is not a report", "#!/usr/bin/env python3")
        self.refused(run(COMMAND, "c++", "--gcc", "a.c"), "C++")
        self.refused(cc("--gcc", "--untrusted", "-c", "a.c"), "--untrusted")

    def test_untrusted_refuses_assembly_language(self):
        for words in (["a.s"], ["a.S"], ["-x", "assembler", "a.c"], ["-xassembler-with-cpp", "a"]):
            self.refused(cc("--untrusted", "-c", *words), "assembly language")
        self.refused(cc("--untrusted", "-c", "-fno-stack-clash-protection", "a.c"), "guard")
        self.refused(cc("--untrusted", "-r", "a.o"), "-r")
        self.assertIn("-c", plan("--untrusted", "-c", "a.c"))

    def test_untrusted_refuses_options_that_could_remove_checks(self):
        for words in (("-Xclang", "-load"), ("-Xclang=-O0",), ("-mllvm", "-x"), ("-fplugin=x.so",),
                      ("-fpass-plugin=x.so",), ("-Wl,--defsym=a=b",), ("-Xlinker", "x.o"),
                      ("-B/x",), ("-L/x",), ("-lx",), ("-fuse-ld=/x",), ("-Wa,-x",),
                      ("-mstack-probe-size=1000000",), ("-save-temps",), ("-z", "execstack")):
            self.refused(cc("--untrusted", "-c", *words, "a.c"), f"{words[0]}: --untrusted refuses")
            self.assertIn("-c", plan("-c", *words, "a.c"))
        for words in (("x.bc",), ("x.ll",), ("x.f90",), ("-x", "ir", "a.c"), ("-x", "f95", "a.c")):
            self.refused(cc("--untrusted", "-c", *words), "--untrusted refuses")
        self.assertIn("-lm", plan("--untrusted", "a.c", "-lm"))

    def test_options_that_lose_the_checks_are_refused(self):
        for words in (("--config", "x.cfg"), ("--config=x.cfg",), ("-fembed-bitcode",),
                      ("-fembed-bitcode=all",), ("-femulated-tls",), ("-Xclang", "-flto=thin"),
                      ("-Xclang=-disable-llvm-passes",)):
            self.refused(cc("-c", *words, "a.c"), words[0].split("=")[0])
        self.assertIn("-c", plan("-c", "-fembed-bitcode=off", "a.c"))


class Answers(Folder):
    """Questions get the answers of clang itself."""

    def setUp(self):
        super().setUp()
        self.clang = next(w for w in plan("-c", "a.c") if "=" not in w)

    def same(self, *words, **more):
        ours, theirs = cc(*words, **more), run(self.clang, *words, **more)
        self.assertEqual((ours.returncode, ours.stdout, ours.stderr),
                         (theirs.returncode, theirs.stdout, theirs.stderr), words)

    def test_questions(self):
        for words in (["--version"], ["-v"], ["-dumpversion"], ["-dumpmachine"],
                      ["-print-search-dirs"], ["-print-file-name=libc.so"],
                      ["-print-prog-name=ld"], ["-print-libgcc-file-name"],
                      ["-print-resource-dir"], ["--print-multi-lib"], ["-print-multiarch"],
                      ["-print-target-triple"], [], ["-c"], ["-c", "no-such.c"],
                      ["--no-such-option", "-c", "x.c"], ["-qversion"], ["-V"], ["-o"]):
            self.same(*words, cwd=self.folder)

    def test_a_wrong_program_gets_the_same_messages_and_status(self):
        source = self.write("wrong.c", "int f(void) { return undeclared; }\n")
        self.same("-c", source, "-o", self.folder / "x.o")
        self.same("-fsyntax-only", "-Wall", source)

    def test_preprocessed_text_is_the_same(self):
        source = self.write("a.c", "#include <stdio.h>\n#include <string.h>\nint x = __LINE__;\n")
        self.same("-E", source)
        self.same("-E", "-", input="int a = 1;\n")
        self.same("-M", source)

    def test_macros_do_not_depend_on_the_level(self):
        texts = {cc("-dM", "-E", level, "-x", "c", "/dev/null").stdout
                 for level in ("-O0", "-O1", "-O2", "-O3", "-Os")}
        self.assertEqual(len(texts), 1)
        text = texts.pop()
        self.assertIn("#define __clang__ 1", text)
        self.assertNotIn("__OPTIMIZE__", text)

    def test_fortify_source_still_works(self):
        source = self.write("f.c", "#include <string.h>\nvoid f(char *a);\n"
                            "void g(const char *b, int n) { char a[8]; memcpy(a, b, n); f(a); }\n")
        done = cc("-O2", "-D_FORTIFY_SOURCE=2", "-S", source, "-o", "-", "-Werror")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("__memcpy_chk", done.stdout)

    def test_nothing_is_said_to_be_unused(self):
        source = self.write("a.c", HELLO)
        for words in (["-c", "-fPIC", source, "-o", "a.o"], ["-Werror", "-E", source, "-o", "a.i"],
                      ["-Werror", "-shared", "a.o", "-o", "a.so"],
                      ["-Werror", "-r", "a.o", "-o", "b.o"], ["-Werror", "-S", "a.i"],
                      ["-Werror", "-c", "a.s", "-o", "c.o"], ["-Werror", "-fsyntax-only", source]):
            done = cc(*words, cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_help_tells_both_parts(self):
        text = cc("--help").stdout
        self.assertIn("--untrusted", text)
        self.assertIn("-fsyntax-only", text)
        self.assertIn("janusrt cc", run(COMMAND, "--help").stdout)


if __name__ == "__main__":
    if cc("--print", "-c", "a.c").returncode != 0:
        print(cc("--print", "-c", "a.c").stderr, end="")
        print("the tests that need clang and its plugin are left out")
        unittest.main(argv=[sys.argv[0], "FindsClang", *sys.argv[4:]])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
