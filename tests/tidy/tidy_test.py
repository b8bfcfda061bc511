#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Feeds tools/tidy.py small trees, each with one breach, and looks for the one message."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import tidy  # noqa: E402

SPDX = "/* SPDX-License-Identifier: MIT */\n"
ROOMS = "# SPDX-License-Identifier: MIT\nbase\nplat trace\nfiber\n"
ANSWERS = """/*
 * Context: anyone.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    nothing.
 * Errors:  none.
 */
"""


class Tidy(unittest.TestCase):
    def breaches(self, files, spdx=True):
        """What tidy says about a tree of these files; C files get their SPDX line for free."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                if spdx and path.endswith((".c", ".h", ".S")):
                    text = SPDX + text
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return tidy.check(root)

    def room_tree(self, path, text):
        tree = {"src/rooms.txt": ROOMS}
        for room in ("base", "plat", "trace", "fiber"):
            tree[f"src/{room}/x.h"] = ""
        tree[path] = text
        return tree

    def clean(self, files):
        self.assertEqual(self.breaches(files), [])

    def one(self, files, expected, spdx=True):
        self.assertEqual(self.breaches(files, spdx), [expected])


class Rooms(Tidy):
    def test_a_room_may_include_itself_and_lower_rooms(self):
        self.clean(self.room_tree("src/fiber/a.c", '#include "base/x.h"\n#include "fiber/x.h"\n'))

    def test_a_room_must_not_look_up(self):
        self.one(self.room_tree("src/plat/a.c", '#include "fiber/x.h"\n'),
                 "src/plat/a.c:2: plat must not look into fiber")

    def test_rooms_on_one_line_do_not_see_each_other(self):
        self.one(self.room_tree("src/plat/a.c", '#include "trace/x.h"\n'),
                 "src/plat/a.c:2: plat must not look into trace")

    def test_an_include_names_its_room(self):
        self.one(self.room_tree("src/plat/a.c", '#include "x.h"\n'),
                 'src/plat/a.c:2: write "plat/x.h": includes name the room')

    def test_an_unknown_room_is_named(self):
        self.one(self.room_tree("src/plat/a.c", '#include "cellar/x.h"\n'),
                 "src/plat/a.c:2: there is no room cellar")

    def test_an_include_in_a_comment_does_not_count(self):
        self.clean(self.room_tree("src/plat/a.c", '/*\n#include "fiber/x.h"\n*/\n'))

    def test_every_folder_is_listed(self):
        self.one(self.room_tree("src/attic/a.c", ""),
                 "src/rooms.txt: folder src/attic is not listed")

    def test_every_listed_room_exists(self):
        tree = self.room_tree("src/rooms.txt", ROOMS + "sched\n")
        self.one(tree, "src/rooms.txt:5: there is no folder src/sched")

    def test_a_room_is_listed_once(self):
        tree = self.room_tree("src/rooms.txt", ROOMS + "base\n")
        self.one(tree, "src/rooms.txt:5: room base is listed twice")


    def test_the_rooms_of_the_language_have_a_list_of_their_own(self):
        tree = {"lang/rooms.txt": "# SPDX-License-Identifier: MIT\ntext\nsyntax # the tree\n",
                "lang/text/x.h": "",
                "lang/syntax/x.h": '#include "text/x.h"\n#include <janusrt/status.h>\n'}
        self.clean(tree)
        tree["lang/text/a.c"] = '#include "syntax/x.h"\n'
        self.one(tree, "lang/text/a.c:2: text must not look into syntax")


class Size(Tidy):
    def function(self, lines):
        body = "    x();\n" * (lines - 4)
        return f"\nstatic int\nlong_one(int a)\n{{\n{body}}}\n"

    def test_a_function_of_60_lines_is_allowed(self):
        self.clean({"tests/a.c": self.function(60)})

    def test_a_function_of_61_lines_is_too_long(self):
        self.one({"tests/a.c": self.function(61)}, "tests/a.c:3: long_one is 61 lines, limit 60")

    def test_attributes_do_not_hide_a_functions_name(self):
        text = "\n__attribute__((noreturn)) void f(void)\n{\n" + "    x();\n" * 60 + "}\n"
        self.one({"bench/a.c": text}, "bench/a.c:3: f is 63 lines, limit 60")

    def test_a_long_test_is_named_by_its_sentence(self):
        text = '\nTEST("it works")\n{\n' + "    x();\n" * 60 + "}\n"
        self.one({"tests/a.c": text}, 'tests/a.c:3: "it works" is 63 lines, limit 60')

    def test_a_long_assembly_function_is_seen(self):
        text = "f:\n    .cfi_startproc\n" + "    nop\n" * 60 + "    .cfi_endproc\n"
        tree = self.room_tree("src/fiber/a.S", text)
        self.one(tree, "src/fiber/a.S:3: f is 62 lines, limit 60")

    def test_a_file_of_601_lines_is_too_long(self):
        self.clean({"examples/a.c": "int a;\n" * 599})
        self.one({"examples/a.c": "int a;\n" * 600},
                 "examples/a.c: 601 lines, limit 600: which half is a room of its own?")

    def test_a_line_of_101_columns_is_too_long(self):
        self.clean({"include/a.h": "/" * 100 + "\n"})
        self.one({"include/a.h": "/" * 101 + "\n"}, "include/a.h:2: 101 columns, limit 100")


class Spdx(Tidy):
    def test_every_kind_of_file_needs_its_licence(self):
        wrong = "no SPDX-License-Identifier in the first three lines"
        for path in ("tests/a.c", "include/a.h", "tools/a.py", "cmake/a.cmake", "CMakeLists.txt",
                     "Makefile", "README.md", "docs/man/a.3.scd", "tools/run", ".clang-format"):
            with self.subTest(path):
                self.one({path: "text\n"}, f"{path}:1: {wrong}", spdx=False)

    def test_the_fourth_line_is_too_late(self):
        self.one({"README.md": "\n\n\n" + SPDX},
                 "README.md:1: no SPDX-License-Identifier in the first three lines")

    def test_json_and_the_licence_itself_are_exempt(self):
        self.clean({"CMakePresets.json": "{}\n", "LICENSE": "MIT License\n"})


class Atomics(Tidy):
    def test_a_reason_beside_or_above_is_enough(self):
        self.clean(self.room_tree("src/fiber/a.c", (
            "int a = jrt_load_relaxed(&x); /* relaxed: own variable. */\n\n\n\n\n\n"
            "/* acquire: pairs with the store in b.c, which is\n"
            " * explained\n * at\n * some\n * length. */\n"
            "int b = jrt_load_acquire(&y);\n")))

    def test_an_operation_without_a_reason_is_found(self):
        self.one(self.room_tree("src/fiber/a.c", "int a = jrt_load_relaxed(&x);\n"),
                 'src/fiber/a.c:2: jrt_load_relaxed: no comment says why "relaxed" is enough')

    def test_a_reason_for_another_order_does_not_count(self):
        text = "/* relaxed: own variable. */\njrt_store_release(&x, 1);\n"
        self.one(self.room_tree("src/fiber/a.c", text),
                 'src/fiber/a.c:3: jrt_store_release: no comment says why "release" is enough')

    def test_a_reason_five_lines_above_is_too_far(self):
        text = "/* release: yes. */\n\n\n\n\njrt_store_release(&x, 1);\n"
        self.one(self.room_tree("src/fiber/a.c", text),
                 'src/fiber/a.c:7: jrt_store_release: no comment says why "release" is enough')

    def test_the_order_in_code_is_not_a_reason(self):
        text = 'int acquire; const char *s = "acquire";\njrt_exchange_acquire(&x, 1);\n'
        self.one(self.room_tree("src/fiber/a.c", text),
                 'src/fiber/a.c:3: jrt_exchange_acquire: no comment says why "acquire" is enough')

    def test_an_operation_must_name_its_order(self):
        self.one(self.room_tree("src/fiber/a.c", "jrt_fetch_add(&x, 1);\n"),
                 "src/fiber/a.c:2: jrt_fetch_add does not say its memory order")

    def test_raw_atomics_live_in_one_file(self):
        text = "int a = atomic_load(&x);\n"
        self.clean(self.room_tree("src/base/atomic.h", text))
        self.one(self.room_tree("src/fiber/a.c", text),
                 "src/fiber/a.c:2: atomic_load: only base/atomic.h may use it")
        self.one(self.room_tree("src/fiber/a.c", "__atomic_store_n(&x, 1, 0);\n"),
                 "src/fiber/a.c:2: __atomic_store_n: only base/atomic.h may use it")


class Answers(Tidy):
    def header(self, text):
        return {"include/janusrt/a.h": text}

    def test_five_answers_in_order_are_accepted(self):
        self.clean(self.header(ANSWERS + "JANUS_NODISCARD JANUS_API int janus_a(int x,\n"
                               "                                       int y);\n"))

    def test_the_macro_itself_needs_none(self):
        self.clean(self.header("#define JANUS_API __attribute__((used))\n"))

    def test_a_missing_answer_is_named(self):
        self.one(self.header(ANSWERS.replace(" * Cost:    nothing.\n", "")
                             + "JANUS_API int janus_a(void);\n"),
                 "include/janusrt/a.h:8: janus_a does not say Cost:")

    def test_answers_in_another_order_are_refused(self):
        text = ANSWERS.replace("Owns: ", "X").replace("Cost: ", "Owns: ").replace("X", "Cost: ")
        self.one(self.header(text + "JANUS_API int janus_a(void);\n"),
                 "include/janusrt/a.h:9: janus_a: the order is "
                 "Context: Yields: Owns: Cost: Errors:")

    def test_one_comment_does_not_serve_two_functions(self):
        text = ANSWERS + "JANUS_API int janus_a(void);\nJANUS_API int janus_b(int);\n"
        self.one(self.header(text), "include/janusrt/a.h:10: janus_b does not say "
                 "Context: Yields: Owns: Cost: Errors:")


class Labels(Tidy):
    essay = "/*\n * [slab-free] a free stack is on one list.\n */\n"

    def test_a_label_that_is_defined_and_cited_is_fine(self):
        self.clean(self.room_tree("src/fiber/a.c", self.essay + "/* see [slab-free] */\n"))
        self.clean(self.room_tree("src/fiber/a.c",
                                  self.essay + 'jrt_invariant("slab-free", x == 1);\n'))
        self.clean(self.room_tree("src/fiber/a.c", (
            "/* release [push-done]: the slot is written first. */\n"
            "jrt_store_release(&x, 1);\n"
            "int a = jrt_load_acquire(&x); /* acquire: pairs with [push-done]. */\n")))

    def test_a_label_beside_code_cites(self):
        self.clean(self.room_tree("src/fiber/a.c", self.essay + "int a; /* [slab-free] */\n"))

    def test_a_cited_label_must_exist(self):
        self.one(self.room_tree("src/fiber/a.c", "/* as [slab-gone] says */\n"),
                 "src/fiber/a.c:2: [slab-gone] is cited and nowhere defined")
        self.one(self.room_tree("src/fiber/a.c", 'jrt_invariant("slab-gone", true);\n'),
                 "src/fiber/a.c:2: [slab-gone] is cited and nowhere defined")

    def test_a_defined_label_must_be_cited(self):
        self.one(self.room_tree("src/fiber/a.c", self.essay),
                 "src/fiber/a.c:3: [slab-free] is defined and never cited")

    def test_a_label_is_defined_once(self):
        text = self.essay + "\n" + self.essay + "/* see [slab-free] */\n"
        self.one(self.room_tree("src/fiber/a.c", text),
                 "src/fiber/a.c:7: [slab-free] is already defined at src/fiber/a.c:3")

    def test_ranges_and_indices_are_no_labels(self):
        self.clean(self.room_tree("src/fiber/a.c", "/* matches [a-z] and [0-9] */\nx[i-j] = 1;\n"))


class Words(Tidy):
    def test_nothing_is_left_for_later(self):
        for word in tidy.UNFINISHED:
            with self.subTest(word):
                self.one({"README.md": f"{SPDX}\n{word} later\n"},
                         f"README.md:3: {word}: do it or drop it")

    def test_a_test_must_not_sleep(self):
        for call in ("sleep(1)", "usleep (5)", "nanosleep(&t, NULL)"):
            with self.subTest(call):
                self.one({"tests/a.c": f"    {call};\n"},
                         "tests/a.c:2: a test must not sleep: wait for what it waits for")
        self.clean({"tests/a.c": "/* sleep(1) would hide it */\n", "bench/b.c": "sleep(1);\n"})

    def test_an_example_fails_with_numbers_of_its_own(self):
        what = "-1 to -99 are statuses: return a number below -99"
        for code in ("return -1;", "return -99;", " *     if (a != b) return -7;"):
            with self.subTest(code):
                self.one({"examples/a.c": f"{code}\n"}, f"examples/a.c:2: {what}")
        self.clean({"examples/a.c": "return -100;\n", "tests/a.c": "return -1;\n"})

    def test_a_public_call_for_io_is_told(self):
        head = "janus_status janus_a(void)\n{\n"
        rooms = {"src/rooms.txt": "# SPDX-License-Identifier: MIT\nio\n"}
        self.one({**rooms, "src/io/a.c": f"{head}    return JANUS_INVALID;\n}}\n"},
                 "src/io/a.c:4: a public call for I/O returns through jrt_io_told")
        self.clean({**rooms, "src/io/a.c": f"{head}    return jrt_io_told(b);\n}}\n"
                    "static int c(void)\n{\n    return d;\n}\n"})

    def test_a_room_asks_the_seam_for_memory(self):
        for call in ("malloc(1)", "calloc (1, 1)", "strdup(t)", "aligned_alloc(8, 8)"):
            with self.subTest(call):
                name = call.split("(")[0].strip()
                self.one(self.room_tree("src/fiber/a.c", f"    p = {call};\n"),
                         f"src/fiber/a.c:2: {name}: ask the seam, jrt_{name}, for memory")
        self.clean(self.room_tree("src/plat/a.c", "p = malloc(1);\n"))
        self.clean(self.room_tree("src/fiber/a.c", "p = jrt_malloc(1);\n"))

    def test_http_sees_only_itself_and_public_headers(self):
        self.one({"http/a.c": '#include "base/wait.h"\n'},
                 'http/a.c:2: http must not look into "base/wait.h": '
                 "include http/... or <janusrt/...>")
        self.clean({"http/a.c": '#include "http/a.h"\n#include <janusrt/status.h>\n'})

    def test_the_compiler_sees_only_itself_and_public_headers(self):
        self.one({"cc/support/a.c": '#include "base/wait.h"\n'},
                 'cc/support/a.c:2: cc must not look into "base/wait.h": '
                 "include cc/... or <janusrt/...>")
        self.clean({"cc/support/a.c": '#include "cc/support/a.h"\n#include <janusrt/status.h>\n'})

    def test_the_command_obeys_the_rules_of_the_source(self):
        self.one({"cmd/a.c": "x" * 101 + "\n"}, "cmd/a.c:2: 101 columns, limit 100")


if __name__ == "__main__":
    unittest.main()
