#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests --audit, --report and the notes of --untrusted with objects and lines written by hand.

usage: audit_test.py JANUSRT CLANG [unittest's arguments]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND, CLANG = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
X86, ARM = "x86_64-linux-gnu", "aarch64-linux-gnu"
CAN_READ_ARM = any(map(shutil.which, ("aarch64-linux-gnu-objdump", "llvm-objdump-19")))

# A check as the pass emits it: subtract, branch on the borrow, pay in a cold block.
CHECKED = """
checked:
1:  subq $1, %fs:janus_fuel@tpoff
    jb 2f
3:  decq %rdi
    jne 1b
    ret
2:  movl $1, %edi
    call janus_check_stub
    jmp 3b
"""
# The fuel in a register; the branch on the borrow goes to the end of the function.
REGISTER = """
register:
    movq %fs:janus_fuel@tpoff, %rax
1:  subq $1, %rax
    jb 2f
3:  movq (%rdi), %rdi
    testq %rdi, %rdi
    jne 1b
    movq %rax, %fs:janus_fuel@tpoff
    ret
2:  movq %rax, %fs:janus_fuel@tpoff
    movl $1, %edi
    call janus_check_stub
    movq %fs:janus_fuel@tpoff, %rax
    jmp 3b
"""
# Strips: the outer loop pays, the inner loop counts.
STRIPS = """
strips:
1:  movl $1024, %ecx
    subq $1024, %fs:janus_fuel@tpoff
    jb 2f
3:  addq (%rdi), %rax
    addq $8, %rdi
    decq %rcx
    jne 3b
    subq $1024, %rsi
    jne 1b
    ret
2:  movl $1024, %edi
    movl $1, %esi
    call janus_strip_slow@PLT
    movq %rax, %rcx
    jmp 3b
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def run_in(self, *words, **more):
        return subprocess.run([str(w) for w in words], cwd=self.folder, capture_output=True,
                              text=True, **more)

    def assemble(self, text, name="a.o", target=X86):
        """Functions begin with a label in the first column."""
        lines = []
        for line in text.strip("\n").split("\n"):
            if line[:1].isalpha():
                label = line.split(":")[0]
                lines += [f".globl {label}", f".type {label}, @function"]
            lines.append(line)
        source = self.write("a.s", "\n".join(lines) + "\n")
        done = self.run_in(CLANG, f"--target={target}", "-c", source, "-o", name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def cc(self, *words):
        return self.run_in(COMMAND, "cc", *words)


class Audit(Folder):
    def audit(self, text, target=X86):
        """{function: open or counted} and the exit status"""
        done = self.cc("--audit", self.assemble(text, target=target))
        self.assertEqual(done.stderr, "")
        *lines, last = done.stdout.splitlines()
        self.assertIn("cycles without a check", last)
        found = {}
        for line in lines:
            _, kind, place = line.split(": ", 2)
            found[place.split("+")[0]] = kind
        return found, done.returncode

    def test_checked_loops_are_not_named(self):
        self.assertEqual(self.audit(CHECKED), ({}, 0))
        self.assertEqual(self.audit(REGISTER), ({}, 0))

    def test_a_strip_is_counted(self):
        self.assertEqual(self.audit(STRIPS), ({"strips": "counted"}, 0))

    def test_a_loop_without_a_check_is_open(self):
        for jump in ("jmp 1b", "jne 1b", "loop 1b", "jmp open"):
            text = f"open:\n1: addq $1, %rax\n {jump}\n ret\n"
            self.assertEqual(self.audit(text), ({"open": "open"}, 1), jump)

    def test_an_instruction_that_jumps_to_itself_is_open(self):
        self.assertEqual(self.audit("open:\n1: jmp 1b\n"), ({"open": "open"}, 1))

    def test_a_counted_loop_that_nobody_paid_for_is_open(self):
        text = "open:\n movl %edi, %ecx\n1: decq %rcx\n jne 1b\n ret\n"
        self.assertEqual(self.audit(text), ({"open": "open"}, 1))
        # One way to the loop goes around the payment.
        around = ("open:\n testq %rdi, %rdi\n je 1f\n subq $9, %fs:janus_fuel@tpoff\n"
                  "1: decq %rcx\n jne 1b\n ret\n")
        self.assertEqual(self.audit(around), ({"open": "open"}, 1))
        paid = around.replace("je 1f", "je 2f").replace("ret\n", "ret\n2: ret\n")
        self.assertEqual(self.audit(paid), ({"open": "counted"}, 0))

    def test_a_loop_with_few_rounds_is_short(self):
        text = "short:\n movl ${}, %ecx\n1: decq %rcx\n jne 1b\n ret\n"
        self.assertEqual(self.audit(text.format(1024)), ({"short": "short"}, 0))
        self.assertEqual(self.audit(text.format(1025)), ({"short": "open"}, 1))
        text = "short:\n xorl %eax, %eax\n1: addq $16, %rax\n cmpq ${}, %rax\n jne 1b\n ret\n"
        self.assertEqual(self.audit(text.format(16384)), ({"short": "short"}, 0))
        self.assertEqual(self.audit(text.format(16400)), ({"short": "open"}, 1))

    def test_each_loop_of_a_nest_needs_its_own_bound(self):
        """A counter inside does not bound the loop around it, and the other way round."""
        inner = ("nest:\n subq $9, %fs:janus_fuel@tpoff\n1: movl $8, %ecx\n"
                 "2: decq %rcx\n jne 2b\n jmp 1b\n")
        self.assertEqual(self.audit(inner), ({"nest": "open"}, 1))
        outer = ("nest:\n subq $9, %fs:janus_fuel@tpoff\n1: movq (%rdi), %rdi\n"
                 " testq %rdi, %rdi\n jne 1b\n decq %rcx\n jne 1b\n ret\n")
        self.assertEqual(self.audit(outer)[1], 1)
        both = ("nest:\n subq $9, %fs:janus_fuel@tpoff\n1: movl $8, %ecx\n"
                "2: decq %rcx\n jne 2b\n decq %rdx\n jne 1b\n ret\n")
        self.assertEqual(self.audit(both), ({"nest": "counted"}, 0))

    def test_a_paid_loop_without_a_counter_is_open(self):
        text = ("open:\n subq $9, %fs:janus_fuel@tpoff\n1: movq (%rdi), %rdi\n"
                " testq %rdi, %rdi\n jne 1b\n ret\n")
        self.assertEqual(self.audit(text), ({"open": "open"}, 1))

    def test_a_check_beside_the_loop_does_not_help(self):
        """The branch that pays is on one way through the loop only."""
        text = ("open:\n1: testq %rdi, %rdi\n je 4f\n subq $1, %fs:janus_fuel@tpoff\n jb 2f\n"
                "4: movq (%rdi), %rdi\n jmp 1b\n2: call janus_check_stub\n jmp 4b\n")
        self.assertEqual(self.audit(text), ({"open": "open"}, 1))

    def test_a_branch_that_is_no_borrow_is_no_check(self):
        text = ("open:\n1: testq %rdi, %rdi\n je 2f\n jmp 1b\n2: call janus_check_stub\n ret\n")
        self.assertEqual(self.audit(text), ({"open": "open"}, 1))

    def test_recursion_is_a_cycle(self):
        self.assertEqual(self.audit("one:\n call one\n ret\n"), ({"one": "open"}, 1))
        pair = "one:\n call two\n ret\ntwo:\n jmp one\n"
        self.assertEqual(self.audit(pair), ({"one": "open"}, 1))
        paid = "one:\n subq $1, %fs:janus_fuel@tpoff\n jb 2f\n3: call two\n ret\n" \
               "2: call janus_check_stub\n jmp 3b\ntwo:\n jmp one\n"
        self.assertEqual(self.audit(paid), ({}, 0))

    def test_recursion_through_another_section_is_a_cycle(self):
        text = "one:\n jmp two\n.section .text.two,\"ax\",@progbits\ntwo:\n call one\n ret\n"
        self.assertEqual(self.audit(text), ({"one": "open"}, 1))

    def test_computed_jumps(self):
        text = "open:\n jmp *(%rdi)\n addq $1, %rax\n jmp *8(%rdi)\n"
        self.assertEqual(self.audit(text), ({"open": "open"}, 1))
        paid = ("fine:\n jmp *(%rdi)\n subq $1, %fs:janus_fuel@tpoff\n jb 2f\n3: jmp *8(%rdi)\n"
                "2: call janus_check_stub\n jmp 3b\n")
        self.assertEqual(self.audit(paid), ({}, 0))

    def test_calls_of_others_are_no_cycle(self):
        self.assertEqual(self.audit("one:\n call elsewhere\n jmp further\ntwo:\n call one\n ret\n"),
                         ({}, 0))

    def test_a_call_that_pays_is_a_check(self):
        self.assertEqual(self.audit("one:\n1: movl $1, %edi\n call janus_op\n jmp 1b\n"), ({}, 0))

    @unittest.skipUnless(CAN_READ_ARM, "no objdump for AArch64")
    def test_aarch64(self):
        checked = """
checked:
1:  mrs x9, tpidr_el0
    ldr x10, [x9, x8]
    subs x10, x10, #1
    str x10, [x9, x8]
    b.lo 2f
3:  ldr x0, [x0]
    cbnz x0, 1b
    ret
2:  mov x0, #1
    bl janus_check_stub
    b 3b
"""
        self.assertEqual(self.audit(checked, ARM), ({}, 0))
        for jump in ("b 1b", "cbnz x0, 1b", "tbz w0, #3, 1b", "b.ne 1b", "b open"):
            text = f"open:\n1: ldr x0, [x0]\n {jump}\n ret\n"
            self.assertEqual(self.audit(text, ARM), ({"open": "open"}, 1), jump)
        counted = ("counted:\n adrp x9, :gottprel:janus_fuel\n"
                   "1: ldr x3, [x1], #8\n add x0, x0, x3\n subs x2, x2, #1\n b.ne 1b\n ret\n")
        self.assertEqual(self.audit(counted, ARM), ({"counted": "counted"}, 0))

    def test_places_are_offsets_in_the_function(self):
        self.assemble("first:\n ret\nopen:\n nop\n nop\n1: nop\n jmp 1b\n")
        done = self.cc("--audit", "a.o")
        self.assertIn("a.o: open: open+0x2..0x3 (.text)\n", done.stdout)
        self.assertIn("2 functions, 0 checks, 1 cycles", done.stdout)

    def test_several_files(self):
        self.assemble(CHECKED, "good.o")
        self.assemble("open:\n1: jmp 1b\n", "bad.o")
        done = self.cc("--audit", "good.o", "bad.o")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("cycles without"), 2)
        self.assertEqual(self.cc("--audit", "good.o", "good.o").returncode, 0)

    def test_files_that_cannot_be_read(self):
        for name, part in (("no.o", "No such file"), (self.write("text.o", "text"), "not an ELF")):
            done = self.cc("--audit", name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)
        broken = self.assemble(CHECKED).read_bytes()[:100]
        (self.folder / "broken.o").write_bytes(broken)
        self.assertEqual(self.cc("--audit", "broken.o").returncode, 1)

    def test_plain_code_has_open_cycles_and_compiled_code_has_none(self):
        self.write("loop.c", "int f(int *a, int n) { int s = 0;"
                   " for (int i = 0; i < n; i++) s += a[i] ^ s; return s; }\n"
                   "int *walk(int **p) { while (*p) p = (int **)*p; return (int *)p; }\n"
                   "unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n")
        self.run_in(CLANG, "-O2", "-c", "loop.c", "-o", "plain.o")
        done = self.cc("--audit", "plain.o")
        self.assertEqual(done.returncode, 1)
        for name in ("f", "walk", "fib"):
            self.assertIn(f" open: {name}+", done.stdout)
        if self.cc("--print", "-c", "loop.c").returncode != 0:
            self.skipTest("no plugin")
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            self.assertEqual(self.cc(level, "-c", "loop.c", "-o", "ours.o").returncode, 0)
            done = self.cc("--audit", "ours.o")
            self.assertEqual(done.returncode, 0, f"{level}\n{done.stdout}")


class Report(Folder):
    LINES = ("function\tmain\tx.c:3\tmarks 5\tfolded 1\tstripped 2\tregister 0\tquick 7\n"
             "function\tother\tx.c:9\tmarks 1\tfolded 0\tstripped 0\tregister 1\tquick 0\n"
             "external\tfoo\tx.c:4\tunknown\n"
             "external\tfoo\tx.c:5\tunknown\n"
             "external\tsin\tx.c:6\tknown\n"
             "external\tstrlen\tx.c:7\twrapped\n"
             "thread-local\tcounter\tx.c:1\n"
             "asm\tmain\tx.c:8\n")
    TABLE = """\
function                       place                     marks   folded stripped register    quick
main                           x.c:3                         5        1        2        0        7
other                          x.c:9                         1        0        0        1        0
all                                                          6        1        2        1        7

unknown functions: each call pays one operation, whatever it does inside
    foo                        x.c:4 and 1 more

functions that libjanusrt_cc wraps: they pay for their work, or hold off yields
    strlen                     x.c:7

thread-local data: a task that yields may find another thread's copy
    counter                    x.c:1

inline assembly: its loops have no checks
    main                       x.c:8
"""

    def test_a_table_of_the_lines(self):
        self.write("lines", self.LINES)
        done = self.cc("--report-of", "lines")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", self.TABLE))

    def test_lines_that_are_broken_do_no_harm(self):
        broken = "\n\t\nfunction\nfunction\ta\nasm\n" + "x\t" * 40 + "\n"
        self.write("lines", broken + self.LINES)
        done = self.cc("--report-of", "lines")
        self.assertGreaterEqual(done.returncode, 0)  # no signal
        self.assertLessEqual(done.returncode, 1)

    def test_a_file_that_does_not_exist(self):
        done = self.cc("--report-of", "no-such")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such: No such file", done.stderr)


class Untrusted(Folder):
    """Objects by hand: with the note, with a note without the flag, and without one."""

    def note(self, flags):
        return (".section .note.janusrt,\"a\",@note\n.p2align 2\n .long 8, 8, 1\n"
                f" .asciz \"janusrt\"\n .long 1, {flags}\n.text\n")

    def link(self, *inputs, env=None):
        # The command does not run: what is refused is refused before.
        return self.cc("--untrusted", "--print", *inputs)

    def setUp(self):
        super().setUp()
        self.assemble(self.note(1) + "good:\n ret\n", "good.o")
        self.assemble(self.note(0) + "plain:\n ret\n", "plain.o")
        self.assemble("foreign:\n ret\n", "foreign.o")
        self.assemble(".data\nnumber: .long 1\n", "data.o")
        if self.cc("--print", "-c", "a.c").returncode != 0:
            self.skipTest("no plugin")

    def refused(self, done, *parts):
        self.assertEqual(done.returncode, 1, done.stdout)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_objects_with_the_note_are_linked(self):
        self.assertEqual(self.link("good.o", "data.o", "-lm").returncode, 0)

    def test_other_objects_are_refused(self):
        self.refused(self.link("good.o", "plain.o"), "plain.o: ", "without --untrusted")
        self.refused(self.link("foreign.o"), "foreign.o: ", "did not build it")
        self.assertEqual(self.cc("--print", "foreign.o").returncode, 0)

    def test_each_part_of_a_joined_object_needs_the_flag(self):
        self.run_in("ld", "-r", "good.o", "plain.o", "-o", "joined.o")
        self.refused(self.link("joined.o"), "without --untrusted")
        self.run_in("ld", "-r", "good.o", "good.o", "data.o", "-z", "muldefs", "-o", "joined.o")
        self.assertEqual(self.link("joined.o").returncode, 0)

    def test_archives_are_searched(self):
        self.run_in("ar", "rcs", "good.a", "good.o", "data.o")
        self.assertEqual(self.link("good.a").returncode, 0)
        self.run_in("ar", "rcs", "bad.a", "good.o", "foreign.o")
        self.refused(self.link("bad.a"), "bad.a(foreign.o)")
        self.run_in("ar", "rcsT", "thin.a", "good.o")
        self.refused(self.link("thin.a"), "thin archive")

    def test_broken_files_are_refused(self):
        whole = (self.folder / "good.o").read_bytes()
        for length in (20, 63, 64, 200, len(whole) - 100):
            (self.folder / "cut.o").write_bytes(whole[:length])
            self.refused(self.link("cut.o"), "cut.o: ")
        self.run_in("ar", "rcs", "good.a", "good.o")
        archive = (self.folder / "good.a").read_bytes()
        (self.folder / "cut.a").write_bytes(archive[: len(archive) // 2])
        self.refused(self.link("cut.a"), "broken")


if __name__ == "__main__":
    if shutil.which(CLANG) is None:
        print(f"ok 1 - cc/audit_test # SKIP no {CLANG}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
