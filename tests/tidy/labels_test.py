#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Feeds tools/labels.py small trees, each with one breach, and looks for the one message."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import labels  # noqa: E402

ESSAY = "/*\n * [slab-free]  a free stack is on one list.\n */\n"
TEST = 'TEST("a free stack is on one "\n     "list")\n{\n}\n'


class Labels(unittest.TestCase):
    def read(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return labels.Labels(root)

    def clean(self, files):
        found = self.read(files)
        self.assertEqual(found.wrong, [])
        return found.counts()

    def one(self, files, path, message):
        wrong = self.read(files).wrong
        self.assertEqual(len(wrong), 1, wrong)
        self.assertEqual(wrong[0][0], path)
        self.assertIn(message, wrong[0][2])

    def listed(self, entry, essay=ESSAY, entries=1):
        return {"src/fiber/a.c": essay, "tests/fiber/a_test.c": TEST,
                "tools/labels.txt": f"# list\nentries: {entries}\n{entry}\n"}

    def test_a_label_with_nothing_behind_it_is_refused(self):
        self.one({"src/fiber/a.c": ESSAY}, "src/fiber/a.c", "[slab-free] is neither asserted nor")

    def test_an_assertion_counts_in_all_builds_and_in_debug_builds(self):
        for call in ('jrt_invariant("slab-free", x);', 'jrt_debug_invariant(\n    "slab-free", x);',
                     'jrt_die("invariant [slab-free] broken", "", __FILE__, __LINE__);'):
            counts = self.clean({"src/fiber/a.c": ESSAY + call})
            self.assertEqual((counts["asserted"], counts["modelled"]), (1, 0), call)

    def test_a_demand_or_a_static_assertion_counts_if_it_names_the_label(self):
        for call in ('jrt_demand(x, /* [slab-free] */\n           "a free stack");\n',
                     'jrt_demand(x,\n           "a free stack"); /* [slab-free] */\n',
                     '_Static_assert(sizeof x == 8, "[slab-free] eight bytes");\n'):
            self.assertEqual(self.clean({"src/fiber/a.c": ESSAY + call})["asserted"], 1, call)
        for call in ('jrt_demand(x, "a free stack");\nf(); /* [slab-free] */\n',
                     '/* jrt_demand(x, "[slab-free]"); */\n',
                     '#define D(x) jrt_demand(x, "[slab-free]");\n'):
            self.one({"src/fiber/a.c": ESSAY + call}, "src/fiber/a.c", "neither")

    def test_an_assertion_in_a_comment_or_outside_of_the_library_does_not_count(self):
        self.one({"src/fiber/a.c": ESSAY + '/* jrt_invariant("slab-free", x) */\n'},
                 "src/fiber/a.c", "neither")
        self.one({"src/fiber/a.c": ESSAY, "tests/fiber/a.c": 'jrt_invariant("slab-free", x);\n'},
                 "src/fiber/a.c", "neither")

    def test_a_model_counts_what_it_says_that_it_checks(self):
        for path in ("models/slab.pml", "tests/fiber/slab_model.c"):
            counts = self.clean({"src/fiber/a.c": ESSAY,
                                 path: "/*\n * About slabs.\n *\n * checks: [slab-free]\n */\n"})
            self.assertEqual((counts["asserted"], counts["modelled"]), (0, 1))

    def test_a_model_that_only_relies_on_a_label_does_not_count(self):
        self.one({"src/fiber/a.c": ESSAY, "models/slab.pml":
                  "/*\n * checks: nothing\n *\n * It takes [slab-free] for granted. */\n"},
                 "src/fiber/a.c", "neither")

    def test_a_label_that_is_cited_anywhere_must_exist(self):
        self.one({"src/fiber/a.c": "/* see [slab-gone] */\n"}, "src/fiber/a.c", "nowhere defined")
        self.one({"src/fiber/a.c": 'jrt_debug_invariant("slab-gone", x);\n'}, "src/fiber/a.c",
                 "nowhere defined")
        self.one({"docs/a.md": "as [slab-gone] says\n"}, "docs/a.md", "nowhere defined")
        self.one({"models/a.pml": "/* checks: [slab-gone] */\n"}, "models/a.pml", "nowhere defined")
        self.clean({"docs/a.md": "a link, [slab-gone](#slab-gone)\n"})

    def test_a_label_is_defined_once(self):
        use = 'jrt_invariant("slab-free", x);\n'
        self.one({"src/fiber/a.c": ESSAY + use, "src/fiber/b.c": ESSAY}, "src/fiber/b.c",
                 "already defined at src/fiber/a.c:2")

    def test_the_list_gives_a_reason_or_a_test_that_exists(self):
        counts = self.clean(self.listed("slab-free: a choice: it is shorter"))
        self.assertEqual(counts["a choice"], 1)
        counts = self.clean(self.listed(
            "slab-free: tests/fiber/a_test.c: a free stack is on one list"))
        self.assertEqual(counts["shown by a test alone"], 1)
        for entry, message in (
                ("slab-free: a choice", "give a reason"),
                ("slab-free: because: it is", 'say "a choice: why"'),
                ("slab-free: tests/fiber/b_test.c: it is", "there is no tests/fiber/b_test.c"),
                ("slab-free: tests/fiber/a_test.c: it is not", "has no test")):
            self.one(self.listed(entry), "tools/labels.txt", message)

    def test_the_list_holds_no_label_that_is_asserted_or_gone(self):
        asserted = ESSAY + 'jrt_invariant("slab-free", x);\n'
        self.one(self.listed("slab-free: a choice: it is shorter", asserted), "tools/labels.txt",
                 "take it off the list")
        self.one(self.listed("slab-free: a choice: it is shorter", "\n"), "tools/labels.txt",
                 "nowhere defined")

    def test_the_head_of_the_list_counts_its_entries(self):
        for entries in (0, 2):
            self.one(self.listed("slab-free: a choice: it is shorter", entries=entries),
                     "tools/labels.txt", f"1 entries, and the head says {entries}")


if __name__ == "__main__":
    unittest.main()
