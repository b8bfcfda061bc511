#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Feeds tools/rooms.py small trees, each with one breach, and looks for the one message. CC names
the compiler of the objects."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import rooms  # noqa: E402

UPCALLS = "struct jrt_upcalls {\n    void (*wake_all)(void);\n    void (*pay)(int price);\n};\n"
LOW = "void jrt_low(void)\n{\n}\n"
HIGH = "void jrt_high(void)\n{\n}\n"
DOCUMENT = f"# Rooms\n\n{rooms.BEGIN}\n{rooms.END}\n\nThe end.\n"
UPWARDS = "src/base/low.c: base names jrt_high, which src/task/high.c defines above it"


class Rooms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write({"src/rooms.txt": "# lowest first\nbase\ntask\nrt\n",
                    "src/task/upcalls.h": UPCALLS, "docs/ARCHITECTURE.md": DOCUMENT,
                    "src/base/low.c": LOW, "src/task/high.c": HIGH})

    def write(self, files):
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def breaches(self, files):
        self.write(files)
        return list(rooms.breaches(self.root))

    def run_tool(self, *arguments):
        """(exit status, what it printed)"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = rooms.main([*arguments, str(self.root)])
        return status, printed.getvalue()


class Sources(Rooms):
    def test_a_call_downwards_is_fine(self):
        self.assertEqual(self.breaches({"src/rt/a.c": "void f(void) { jrt_high(); jrt_low(); }\n"}),
                         [])
        self.assertEqual(self.run_tool(), (0, ""))

    def test_a_call_upwards_is_found(self):
        self.assertEqual(self.breaches({"src/base/low.c": "void f(void)\n{\n    jrt_high();\n}\n"}),
                         [UPWARDS])
        self.assertEqual(self.run_tool(), (1, UPWARDS + "\n"))

    def test_a_pointer_to_a_function_of_a_higher_room_is_found(self):
        self.assertEqual(self.breaches({"src/base/low.c": "void (*f)(void) = jrt_high;\n"}),
                         [UPWARDS])

    def test_a_macro_that_calls_upwards_is_found(self):
        self.assertEqual(self.breaches({"src/base/low.c": "#define CALL() jrt_high()\n"}),
                         [UPWARDS])

    def test_an_inline_function_of_a_higher_header_is_found(self):
        header = "static inline int jrt_fast(void)\n{\n    return 1;\n}\n"
        self.assertEqual(
            self.breaches({"src/task/fast.h": header, "src/base/low.c": "int x = jrt_fast();\n"}),
            ["src/base/low.c: base names jrt_fast, which src/task/fast.h defines above it"])

    def test_a_function_on_one_line_and_an_object_are_found(self):
        for high in ("int jrt_one(void) { return 1; }\n", "int jrt_one = 1;\n",
                     "const char *const jrt_one[] = {0};\n"):
            found = self.breaches({"src/task/one.c": high, "src/base/low.c": "f(jrt_one);\n"})
            self.assertEqual(len(found), 1, high)

    def test_an_assembly_function_of_a_higher_room_is_found(self):
        found = self.breaches({"src/task/a.S": "    .globl jrt_switch\njrt_switch:\n    ret\n",
                               "src/base/low.c": "void f(void) { jrt_switch(); }\n"})
        self.assertEqual(len(found), 1, found)

    def test_a_name_in_a_comment_a_string_or_a_tag_does_not_count(self):
        for text in ("/* jrt_high calls this */\n", 'const char *x = "jrt_high";\n',
                     "struct jrt_high;\n"):
            self.assertEqual(self.breaches({"src/base/low.c": text}), [], text)

    def test_a_static_function_of_another_file_does_not_count(self):
        self.assertEqual(self.breaches({"src/task/high.c": "static void jrt_high(void)\n{\n}\n",
                                        "src/base/low.c": "void f(void) { jrt_high(); }\n"}), [])

    def test_an_upcall_is_fine(self):
        files = {"src/rt/up.c": "struct jrt_upcalls jrt_upcalls = {0};\n",
                 "src/base/low.c": "void f(void) { jrt_upcalls.pay(1); }\n"}
        self.assertEqual(self.breaches(files), [])

    def test_a_room_of_26_files_is_too_large(self):
        files = {f"src/rt/file{i}.c": "" for i in range(rooms.FILES_MAX)}
        self.assertEqual(self.breaches(files), [])
        found = self.breaches({"src/rt/more.c": ""})
        self.assertEqual(len(found), 1)
        self.assertIn(f"src/rt: {rooms.FILES_MAX + 1} files", found[0])


class Objects(Rooms):
    def compile(self, files):
        """Compiles to objects/ROOM/FILE.c.o, as CMake does. The sources are those of the tree."""
        for path, text in files.items():
            room = pathlib.Path(path).parent.name
            to = self.root / "objects" / room / (pathlib.Path(path).name + ".o")
            to.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([os.environ.get("CC", "cc"), "-x", "c", "-c", "-", "-o", str(to)],
                           input=text, check=True, text=True)
        return list(rooms.object_breaches(self.root, self.root / "objects"))

    def test_objects_that_call_downwards_are_fine(self):
        caller = "void jrt_low(void);\nvoid f(void) { jrt_low(); }\n"
        self.assertEqual(self.compile({"src/base/low.c": LOW, "src/task/high.c": caller}), [])

    def test_an_object_that_calls_upwards_is_found_even_if_the_source_hides_it(self):
        hidden = "#define J(x) jrt_##x\nvoid J(high)(void);\nvoid f(void) { J(high)(); }\n"
        self.assertEqual(self.breaches({"src/base/low.c": hidden}), [])
        self.assertEqual(self.compile({"src/base/low.c": hidden, "src/task/high.c": HIGH}),
                         ["base/low.c.o: f calls jrt_high in task"])

    def test_a_name_that_the_sources_show_elsewhere_is_found(self):
        found = self.compile({"src/base/low.c": LOW, "src/task/high.c": "void jrt_low(void) {}\n"})
        self.assertIn("task/high.c.o: jrt_low was thought to be in base/low.c", found)

    def test_no_objects_are_a_fault(self):
        self.assertEqual(list(rooms.object_breaches(self.root, self.root / "objects")),
                         [f"{self.root / 'objects'}: no objects"])


class Picture(Rooms):
    def test_the_picture_counts_calls_downwards_and_names_upcalls(self):
        self.write({"src/rt/up.c": "struct jrt_upcalls jrt_upcalls = {0};\n",
                    "src/rt/a.c": "void f(void) { jrt_high(); jrt_low(); }\n",
                    "src/task/b.c": "void g(void) { jrt_upcalls.pay(1); }\n"})
        lines = rooms.picture(self.root).split("\n")
        self.assertRegex(lines[1], r"^ 3 rt +2 +1 +1 +\\$")
        self.assertEqual(lines[-1], "task calls upwards: pay")

    def test_an_old_picture_is_found_and_a_written_one_is_not(self):
        self.assertEqual(self.run_tool("--compare")[0], 1)
        self.assertEqual(self.run_tool("--write")[0], 0)
        self.assertEqual(self.run_tool("--compare"), (0, ""))
        self.write({"src/rt/a.c": "void f(void) { jrt_high(); }\n"})
        self.assertEqual(self.run_tool("--compare")[0], 1)

    def test_the_calls_between_two_rooms_are_listed(self):
        self.write({"src/rt/a.c": "void f(void) { jrt_high(); jrt_low(); }\n"})
        self.assertEqual(self.run_tool("--calls", "rt", "task"),
                         (0, "rt/a.c: jrt_high (task/high.c)\n"))


if __name__ == "__main__":
    unittest.main()
