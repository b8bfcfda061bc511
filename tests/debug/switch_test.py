# SPDX-License-Identifier: MIT
"""The switch, one instruction at a time, under gdb: a backtrace is right at each of them.

gdb runs this with two_fibers; gdb_test.sh starts both. At the first instruction of jrt_ctx_switch
the caller's registers are still in the CPU: that is the truth, and no unwinding is needed to know
it. At every instruction from there to the return on the other side, gdb must unwind to the
leaving context while the stack pointer is on its stack, and to the entered one after that: the
same functions, return addresses and stack pointers all the way down to main or jrt_ctx_entry, and
in the first of them the very registers that it had when it called.

At the end every instruction must have been looked at, and every way of switching taken.
"""

import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(__file__))
import session  # noqa: E402

# Chains that may be seen, innermost first.
FIRST = ["first_inner", "first_outer", "first_entry", "fiber_main", "jrt_ctx_entry"]
SECOND = ["second_inner", "second_outer", "second_entry", "fiber_main", "jrt_ctx_entry"]
LEGAL = [
    ["enter", "drive_fibers", "main"],
    ["enter"] + FIRST,
    ["leave"] + FIRST,
    ["leave"] + SECOND,
    ["leave", "third_entry", "fiber_main", "jrt_ctx_entry"],
    ["fiber_main", "jrt_ctx_entry"],
    ["jrt_ctx_entry"],
    ["registers_lost", "drive_bare", "main"],
    ["registers_lost", "bare_main", "jrt_ctx_entry"],
]
# Between them and the switch, or not: these may be inlined, or jump to it.
PERHAPS = {"janus_fiber_resume", "janus_fiber_suspend", "jrt_context_switch", "leave_for_good",
           "leave_for_resumer"}

# (left, entered, whether the control words differed): all of these must have been seen.
WAYS = {
    ("main", "new", False), ("main", "new", True),
    ("main", "fiber", False), ("main", "fiber", True),
    ("fiber", "main", False), ("fiber", "main", True),
    ("fiber", "fiber", True), ("signal", "main", True),
}


class X86:
    pc, sp, load_sp = "rip", "rsp", "rsi"
    kept = ["rbx", "rbp", "r12", "r13", "r14", "r15"]
    frame_bytes = 64
    red_zone = 128
    control = ("fldcw",)

    def call():
        """Where the caller goes on and its stack pointer there, at the first instruction."""
        sp = register("rsp")
        return word(sp), sp + 8

    def kept_in(frame):
        return {name: int(frame.read_register(name)) & MASK for name in X86.kept}


class Arm:
    pc, sp, load_sp = "pc", "sp", "x1"
    kept = [f"x{n}" for n in range(19, 30)]
    frame_bytes = 176
    red_zone = 0
    control = ("msr",)

    def call():
        return register("x30"), register("sp")

    def kept_in(frame):
        """The low half of v8 to v15 too; the rest of them is the caller's to save."""
        values = {name: int(frame.read_register(name)) & MASK for name in Arm.kept}
        for n in range(8, 16):
            values[f"d{n}"] = int(frame.read_register(f"v{n}")["d"]["u"][0])
        return values


MASK = 2**64 - 1
UNREACHED = ("nop", "ud2", "brk")  # around jrt_ctx_entry, which is not called and never returned to


def register(name):
    return int(gdb.newest_frame().read_register(name)) & MASK


def word(address):
    data = gdb.selected_inferior().read_memory(address, 8)
    return int.from_bytes(bytes(data), "little")


class Frame:
    def __init__(self, frame):
        self.name = frame.name()
        self.pc = frame.pc()
        self.sp = int(frame.read_register(cpu.sp)) & MASK
        self.kept = cpu.kept_in(frame)

    def __str__(self):
        return f"{self.name or '??'} at {self.pc:#x}, sp {self.sp:#x}"


def walk():
    """(frames, innermost first; why it ended; what gdb itself would say)

    Only frames that are on the stack; gdb also shows calls that were inlined or jumps.
    """
    frames, frame = [], gdb.newest_frame()
    while frame is not None and len(frames) < 64:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            frames.append(Frame(frame))
        last, frame = frame, frame.older()
    said = gdb.execute("backtrace 64", to_string=True)
    return frames, last.unwind_stop_reason(), said


class Context:
    """What a context was when it left: `frames` are its callers, the first of them known for
    certain."""

    def __init__(self, frames, kind):
        self.frames = frames
        self.kind = kind

    def leaving():
        """At the first instruction of the switch."""
        frames, why, said = walk()
        caller = frames[1]
        caller.pc, caller.sp = cpu.call()
        caller.kept = cpu.kept_in(gdb.newest_frame())
        kind = "main" if frames[-1].name == "main" else "fiber"
        return Context(frames[1:], kind)

    def new(sp):
        """One that has never run: its registers stand in the frame at `sp`."""
        stored = gdb.Value(sp).cast(gdb.lookup_type("struct jrt_ctx_frame").pointer())
        entry = Frame(gdb.newest_frame())
        entry.name = "jrt_ctx_entry"
        entry.pc = int(stored["rip" if cpu is X86 else "x30"])
        entry.sp = sp + cpu.frame_bytes
        entry.kept = {name: int(stored[name]) & MASK for name in entry.kept}
        return Context([entry], "new")


def compare(expected, frames, why, said):
    """What is wrong with the frames behind the first, or None."""
    names = [f.name for f in frames[1:] if f.name not in PERHAPS]
    if names not in LEGAL:
        return "no legal chain"
    if names[-1] != "main" and why != gdb.FRAME_UNWIND_OUTERMOST:
        return f"jrt_ctx_entry is not the end: {gdb.frame_stop_reason_string(why)}"
    for complaint in ("corrupt", "Backtrace stopped", "previous frame"):
        if complaint in said:
            return f"gdb says: {complaint}"
    if len(frames) - 1 != len(expected.frames):
        return f"{len(frames) - 1} callers, not {len(expected.frames)}"
    for ours, seen in zip(expected.frames, frames[1:]):
        if (ours.name, ours.pc, ours.sp) != (seen.name, seen.pc, seen.sp):
            return f"want {ours}"
    wrong = [f"{name} is {seen:#x}, not {expected.frames[0].kept[name]:#x}"
             for name, seen in frames[1].kept.items() if seen != expected.frames[0].kept[name]]
    return f"in {frames[1].name}: {', '.join(wrong)}" if wrong else None


class Switch:
    """Steps through the three functions and remembers who left where."""

    def __init__(self):
        self.contexts = {}  # by the stack pointer they left
        self.ways = set()
        self.visited = {}
        self.code = {}
        for name in ("jrt_ctx_switch", "jrt_ctx_entry", "jrt_ctx_land"):
            self.code[name] = instructions(name)
            self.visited[name] = set()

    def here(self):
        pc = register(cpu.pc)
        return next((name for name, code in self.code.items() if pc in code), None)

    def look(self, expected):
        """A signal may come at any instruction and overwrite what is not the stack's any more."""
        free = register(cpu.sp) - cpu.red_zone
        gdb.selected_inferior().write_memory(free - 256, b"\xa5" * 256)
        frames, why, said = walk()
        wrong = compare(expected, frames, why, said)
        if wrong is None:
            return
        pc = frames[0].pc
        where = gdb.execute(f"x/i {pc:#x}", to_string=True).strip()
        chain = "\n".join(f"  {i} {frame}" for i, frame in enumerate(frames))
        raise session.Failed(f"{wrong}\nat  {where}\n{chain}\ngdb's backtrace:\n{said}")

    def step(self, name, expected):
        """Looks at one instruction, runs it, returns its mnemonic."""
        self.look(expected)
        pc = register(cpu.pc)
        self.visited[name].add(pc)
        gdb.execute("stepi", to_string=True)
        return self.code[name][pc].split()[0]

    def arrive(self, entered):
        """Just after the switch: everything that was kept is back in the CPU."""
        now, then = Frame(gdb.newest_frame()), entered.frames[0]
        if (now.pc, now.sp, now.kept) != (then.pc, then.sp, then.kept):
            raise session.Failed(f"arrived at {now} with {now.kept}\nwant {then}, {then.kept}")

    def follow_switch(self):
        left = Context.leaving()
        load_sp = register(cpu.load_sp)
        entered = self.contexts.get(load_sp) or Context.new(load_sp)
        self.contexts[left.frames[0].sp - cpu.frame_bytes] = left
        differs = False
        while self.here() == "jrt_ctx_switch":
            arrived = load_sp <= register(cpu.sp) <= load_sp + cpu.frame_bytes
            mnemonic = self.step("jrt_ctx_switch", entered if arrived else left)
            differs = differs or mnemonic in cpu.control
        self.ways.add((left.kind, entered.kind, differs))
        self.arrive(entered)
        if entered.kind == "new":
            self.follow_entry()

    def follow_entry(self):
        """From the first instruction of a new context into its main function."""
        while self.here() == "jrt_ctx_entry":
            frames, why, said = walk()
            if len(frames) != 1 or why != gdb.FRAME_UNWIND_OUTERMOST or "stopped" in said:
                raise session.Failed(f"jrt_ctx_entry is not alone:\n{said}")
            self.visited["jrt_ctx_entry"].add(register(cpu.pc))
            gdb.execute("stepi", to_string=True)
        frames, why, said = walk()
        if [f.name for f in frames[1:]] != ["jrt_ctx_entry"] or why != gdb.FRAME_UNWIND_OUTERMOST:
            raise session.Failed(f"a main function has other callers:\n{said}")

    def follow_land(self):
        entered = self.contexts[register(cpu.sp)]
        while self.here() == "jrt_ctx_land":
            self.step("jrt_ctx_land", entered)
        self.ways.add(("signal", entered.kind, True))
        self.arrive(entered)

    def finish(self):
        for name, code in self.code.items():
            missed = [text for pc, text in code.items()
                      if pc not in self.visited[name] and text.split()[0] not in UNREACHED]
            if missed:
                raise session.Failed(f"never executed in {name}: {', '.join(missed)}")
        if not WAYS <= self.ways:
            raise session.Failed(f"never taken: {sorted(WAYS - self.ways)}")


def instructions(name):
    """{address: text} of a function, up to where its symbol ends."""
    at = int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    code = {}
    arch = gdb.newest_frame().architecture()
    while gdb.execute(f"info symbol {at:#x}", to_string=True).split()[0] == name:
        line = arch.disassemble(at, count=1)[0]
        code[at] = line["asm"]
        at += line["length"]
    return code


def test():
    global cpu
    session.start()
    cpu = X86 if "x86-64" in gdb.newest_frame().architecture().name() else Arm
    switch = Switch()
    gdb.Breakpoint("*jrt_ctx_switch", internal=True)
    gdb.Breakpoint("*jrt_ctx_land", internal=True)
    switches = 0
    while session.go_on():
        follow = {"jrt_ctx_switch": switch.follow_switch, "jrt_ctx_land": switch.follow_land}
        follow[switch.here()]()
        switches += 1
    switch.finish()
    looked = sum(len(seen) for seen in switch.visited.values())
    print(f"# {switches} switches, {looked} instructions")


session.run("a backtrace is right at every instruction of the switch", test)
