# SPDX-License-Identifier: MIT
"""tools/gdb/janusrt-gdb.py on two_fibers: fibers in each state, in a process and in its core file.

gdb runs this; gdb_test.sh starts it.
"""

import os
import re
import sys

import gdb

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import session  # noqa: E402

SCRIPT = os.path.join(HERE, "..", "..", "tools", "gdb", "janusrt-gdb.py")
END = ["fiber_main", "jrt_ctx_entry"]
FIRST = ["first_inner", "first_outer", "first_entry"] + END
SECOND = ["second_inner", "second_outer", "second_entry"] + END
PERHAPS = {"janus_fiber_resume", "janus_fiber_suspend", "jrt_context_switch", "leave_for_resumer"}


def expect(truth, what, text):
    if not truth:
        raise session.Failed(f"{what}:\n{text}")


def functions(text):
    """Names in a backtrace, innermost first."""
    names = re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+) \(", text, re.M)
    return [name for name in names if name not in PERHAPS]


def look(command, chain, *words):
    """What a command prints: these functions and these words."""
    before = str(gdb.selected_frame()), gdb.selected_frame().level()
    text = gdb.execute(command, to_string=True)
    expect(functions(text) == chain, f"{command}: want {chain}", text)
    for word in words:
        expect(word in text, f"{command}: want \"{word}\"", text)
    expect("stopped" not in text, f"{command}: the backtrace is torn", text)
    expect((str(gdb.selected_frame()), gdb.selected_frame().level()) == before,
           f"{command}: another frame is selected", text)
    return text


def look_at_suspended():
    text = look("janus fiber first", ["leave"] + FIRST, 'fiber 1 "first", suspended\n',
                " KiB\n", "\n#0  ")
    low, end = (int(word, 16) for word in re.search(r"stack (\w+) to (\w+),", text).groups())
    saved = int(gdb.parse_and_eval("first->context.sp"))
    expect(low < saved < end, f"{saved:#x} is not in the stack", text)
    look("janus fiber-bt second", ["leave"] + SECOND)
    look_at_registers()


def look_at_registers():
    """jrt_ctx_entry keeps the fiber in a register; every frame below has to hand it on."""
    first = gdb.parse_and_eval("first")
    name = "r12" if "x86-64" in gdb.selected_frame().architecture().name() else "x20"
    with sys.modules["__main__"].called_from(first["context"]["sp"]):
        last = list(session.frames())[-1]
        seen = last.name(), int(last.read_register(name))
    expect(seen == ("jrt_ctx_entry", int(first)), "the fiber's registers", seen)


def look_before():
    """At the first look_here; from the frame above, to see that it stays selected."""
    gdb.selected_frame().older().select()
    look_at_suspended()
    look("janus fiber third", [], 'fiber 3 "third", new\n', "has no stack")
    names = [f.name() for f in session.frames()]
    expect(names == ["look_here", "drive_fibers", "main"], "the thread's own backtrace", names)
    try:
        gdb.execute("janus fiber-bt 0", to_string=True)
        expect(False, "a fiber at NULL", "")
    except gdb.error as error:
        expect("no fiber there" in str(error), "a fiber at NULL", error)


def look_nested():
    """first resumed second, which is about to leave."""
    look("janus fiber first", ["enter"] + FIRST, '"first", running\n', "waits for a fiber")
    look("janus fiber second", [], '"second", running\n', "runs on thread 1")


def test():
    session.start()
    gdb.execute(f"source {SCRIPT}")
    here = gdb.Breakpoint("look_here", internal=True)
    session.go_on()
    look_before()
    core = os.path.join(session.folder.name, "core")
    if not session.emulated():
        session.quietly(f"generate-core-file {core}")
    leaving = gdb.Breakpoint("leave", internal=True)
    session.go_on()
    look_nested()
    leaving.delete()
    session.go_on()
    look("janus fiber first", [], '"first", completed\n', "has no stack")
    look("janus fiber third", [], '"third", panicked\n', "has no stack")
    here.delete()
    expect(not session.go_on(), "the program goes on", "")
    if session.emulated():
        print("# core files: not tested, gdb cannot make one of an emulated process")
        return
    session.quietly(f"core-file {core}")
    look_at_suspended()


session.run("a suspended fiber's backtrace can be seen, in a process and in a core file", test)
