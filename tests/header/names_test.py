#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes one name in a copy of the headers and looks for what tools/names.py says about it. Also
compiles every macro of a struct that may grow, as C11 and as C++17. CC and CXX name compilers."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import names  # noqa: E402


class Names(unittest.TestCase):
    def faults(self, header=None, old="", new=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(TOP / "include", root / "include")
            if header is not None:
                path = root / "include/janusrt" / header
                text = path.read_text()
                self.assertIn(old, text)
                path.write_text(text.replace(old, new))
            return list(names.faults(root))

    def finds(self, expected, header, old, new):
        self.assertTrue(any(expected in fault for fault in self.faults(header, old, new)),
                        f"nothing says: {expected}")


class Rules(Names):
    def test_the_headers_keep_the_rules(self):
        self.assertEqual(self.faults(), [])

    def test_a_constant_that_does_not_begin_with_its_enum_is_found(self):
        self.finds("JANUS_GUARDED_BY_CANARY: a constant of janus_guard begins with JANUS_GUARD_",
                   "stack.h", "JANUS_GUARD_CANARY", "JANUS_GUARDED_BY_CANARY")

    def test_an_enum_without_a_name_is_found(self):
        self.finds("give it a name", "explore.h", "enum janus_fault {", "enum {")

    def test_two_enums_with_one_prefix_are_found(self):
        self.finds("the prefix of janus_fault_kind begins with that of janus_fault", "stack.h",
                   "typedef enum janus_guard {",
                   "enum janus_fault_kind { JANUS_FAULT_KIND_ONE };\ntypedef enum janus_guard {")

    def test_a_status_with_the_prefix_of_an_enum_is_found(self):
        self.finds("JANUS_FAULT_FOUND: a status begins with the prefix of janus_fault", "status.h",
                   "X(DEADLOCK,", 'X(FAULT_FOUND, -60, "none") \\\n    X(DEADLOCK,')

    def test_a_struct_without_its_size_is_found(self):
        self.finds("janus_trace_info: begins with size_t struct_bytes", "trace.h",
                   "typedef struct janus_trace_info {", "typedef struct janus_trace_info { int x;")

    def test_a_struct_without_its_macro_is_found(self):
        self.finds("the macro JANUS_TRACE_INFO sets struct_bytes", "trace.h",
                   "#define JANUS_TRACE_INFO()", "#define JANUS_TRACED_INFO()")

    def test_a_snapshot_with_another_verb_is_found(self):
        self.finds("janus_trace_look: a call that fills an info ends in _inspect", "trace.h",
                   "janus_trace_inspect(", "janus_trace_look(")

    def test_a_status_that_may_be_dropped_without_a_reason_is_found(self):
        self.finds("janus_trace_write: JANUS_NODISCARD, or a reason in MAY_DROP", "trace.h",
                   "JANUS_NODISCARD JANUS_API janus_status janus_trace_write",
                   "JANUS_API janus_status janus_trace_write")

    def test_a_reason_that_nothing_needs_is_found(self):
        self.finds("MAY_DROP: janus_trace_destroy is JANUS_NODISCARD", "trace.h",
                   "JANUS_API janus_status janus_trace_destroy",
                   "JANUS_NODISCARD JANUS_API janus_status janus_trace_destroy")

    def test_a_close_that_frees_is_found(self):
        self.finds("janus_trace_close: close says that no more follows; else destroy", "trace.h",
                   "janus_trace_destroy(", "janus_trace_close(")

    def test_a_try_in_another_place_is_found(self):
        self.finds("janus_try_channel_send: try_ stands right before the verb", "channel.h",
                   "janus_channel_try_send(", "janus_try_channel_send(")

    def test_a_call_until_of_nothing_is_found(self):
        self.finds("janus_nap_until: there is no janus_nap", "task.h", "janus_sleep_until(",
                   "janus_nap_until(")

    def test_a_limit_with_max_at_its_end_is_found(self):
        self.finds("janus_scheduler_options: nesting_max: a limit is named max_...", "scheduler.h",
                   "max_nesting;", "nesting_max;")
        self.finds("janus_explore_options: time_max_ns: a limit", "explore.h", "max_time_ns;",
                   "time_max_ns;")
        self.finds("janus_channel_create_unbounded: bytes_max: a limit", "channel.h",
                   "uint64_t max_bytes,", "uint64_t bytes_max,")

    def test_a_name_of_the_documents_cannot_go(self):
        self.finds("FIXED: the documents want a call janus_nursery_create", "abi.h",
                   "janus_nursery_create(", "janus_nursery_make(")


class Macros(unittest.TestCase):
    def compiles(self, compiler, language, flags):
        text, macros = names.preprocessed(TOP)
        sized = [n for n in names.structs(text) if names.GROWING.match(n) and n not in names.PLAIN]
        lines = ["#include <janusrt/janus.h>", "size_t sum(void);", "size_t sum(void) {",
                 "size_t all = 0;"]
        for name in sized:
            field = "" if name.endswith(("_info", "_result")) else "->"
            self.assertIn(name.upper(), macros)
            if field:
                lines.append(f"{{ all += {name.upper()}()->struct_bytes; }}")
            else:
                lines.append(f"{{ {name} v = {name.upper()}(); all += v.struct_bytes; }}")
        lines.append("return all; }\n")
        said = subprocess.run(
            [*compiler.split(), "-x", language, *flags, f"-I{TOP / 'include'}", "-Wall", "-Wextra",
             "-Werror", "-c", "-o", os.devnull, "-"],
            input="\n".join(lines), capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_every_macro_of_a_struct_compiles_as_c11(self):
        self.compiles(os.environ.get("CC", "cc"), "c", ["-std=c11"])

    def test_every_macro_of_a_struct_compiles_as_cxx17(self):
        self.compiles(os.environ.get("CXX", "c++"), "c++", ["-std=c++17"])


if __name__ == "__main__":
    unittest.main()
