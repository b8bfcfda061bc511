#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/costs.md is what tools/costs.py writes, and the tool finds each kind of breach."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import costs  # noqa: E402

HEADER = """/* Yields:  only if the turn is over. */
JANUS_API int janus_pay(void);
/* Yields:  never. */
JANUS_API int janus_read(void);
static inline int janus_add(int a)
{
    return a + 1;
}
#define janus_pay_here() janus_pay()
"""
SOURCE = """static int begin(void)
{
    jrt_stack_check();
    return 0;
}

int janus_pay(void)
{
    return begin();
}

int janus_read(void)
{
    return 1;
}
"""
ROWS = "CALL(pay, (void)janus_pay_here())\nROW(pay)\n"
CHEAP = "CALL(look, (void)janus_read())\nROW(look)\n"
EXCEPTIONS = {"janus_read": ("cheap", "a load")}


class Costs(unittest.TestCase):
    def wrong(self, header=HEADER, source=SOURCE, rows=ROWS, cheap=CHEAP, reasons=None,
              symbols="janus_pay\njanus_read\n"):
        """What the tool says about a small tree."""
        reasons = EXCEPTIONS if reasons is None else reasons
        files = {"include/janusrt/a.h": header, "src/task/a.c": source,
                 "tests/task/calls_test.c": rows, "tests/task/calls_cheap_test.c": cheap,
                 "tests/abi/exported-symbols.txt": symbols}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            with mock.patch.object(costs, "EXCEPTIONS", reasons), \
                    mock.patch.object(costs, "NOT_REPEATED", {}):
                found = costs.Costs(root)
                self.text = found.table()
                return found.wrong

    def test_a_tree_without_a_breach_is_fine(self):
        self.assertEqual(self.wrong(), [])
        self.assertIn("| `janus_pay` | tolls | yes | calls_test: pay |", self.text)
        self.assertIn("| `janus_pay_here` | tolls | yes | calls_test: pay |", self.text)
        self.assertIn("| `janus_read` | nothing, cheap: a load | no | calls_cheap_test: look |",
                      self.text)
        self.assertIn("| `janus_add` | nothing, the caller's own code | no |  |", self.text)

    def test_a_call_that_neither_pays_nor_has_a_reason_is_found(self):
        self.assertIn("janus_read: neither pays nor has a reason in EXCEPTIONS",
                      self.wrong(reasons={}))

    def test_a_payment_by_a_function_that_is_gone_is_found(self):
        tree = costs.Tree(TOP)
        self.assertEqual(costs.old_payments(tree), [])
        with mock.patch.dict(costs.PAYMENTS, {"waits": ("jrt_give_way", "give_way")}):
            self.assertEqual(costs.old_payments(tree),
                             ["PAYMENTS: give_way is nowhere defined"])

    def test_a_payment_that_was_lost_is_found(self):
        self.assertIn("janus_pay: neither pays nor has a reason in EXCEPTIONS",
                      self.wrong(source=SOURCE.replace("jrt_stack_check();", "")))

    def test_a_reason_that_is_no_longer_needed_is_found(self):
        reasons = {**EXCEPTIONS, "janus_pay": ("cheap", "a load")}
        self.assertEqual(self.wrong(reasons=reasons),
                         ["janus_pay: pays by now; take it out of EXCEPTIONS"])

    def test_a_call_that_no_row_repeats_is_found(self):
        self.assertEqual(self.wrong(cheap=""),
                         ["janus_read: no row of tests/task/calls*_test.c repeats it"])

    def test_a_row_that_does_not_run_is_found(self):
        self.assertEqual(self.wrong(cheap=CHEAP.replace("ROW(look)", "")),
                         ["calls_cheap_test.c: look is in no ROW"])

    def test_a_call_that_is_exported_and_not_declared_is_found(self):
        self.assertEqual(self.wrong(symbols="janus_pay\njanus_read\njanus_more\n"),
                         ["janus_more: exported or declared, but not both"])

    def test_a_header_that_denies_the_end_of_a_turn_is_found(self):
        self.assertEqual(self.wrong(header=HEADER.replace("only if the turn is over", "never")),
                         ["a.h: janus_pay can end the turn, but Yields says never"])

    def test_docs_costs_md_is_up_to_date(self):
        self.assertEqual(costs.main(["--check", str(TOP)]), 0)


if __name__ == "__main__":
    unittest.main()
