# SPDX-License-Identifier: MIT
"""gdb commands for fibers. In gdb:  source janusrt-gdb.py

    janus fiber FIBER      number, name, state and stack, then the backtrace
    janus fiber-bt FIBER   the backtrace alone

FIBER is any expression that gives a janus_fiber pointer. Both work on a live process and on a core
file, and change neither. They need the library's debug information (-g).

Everything a suspended fiber is lies in a struct jrt_ctx_frame on its own stack, whose fields are
named after the registers they hold. For the time of a backtrace an unwinder tells gdb that what
the current thread runs was called from there.
"""

import contextlib
import re

import gdb
import gdb.unwinder

# By gdb's name of the architecture: program counter, stack pointer, and the field of jrt_ctx_frame
# with the address where the fiber goes on.
MACHINES = {
    "i386:x86-64": ("rip", "rsp", "rip"),
    "aarch64": ("pc", "sp", "x30"),
}
STATES = ("new", "running", "suspended", "completed", "panicked")


def machine():
    name = gdb.newest_frame().architecture().name()
    if name not in MACHINES:
        raise gdb.GdbError(f"janus: unknown machine {name}")
    return MACHINES[name]


def pointer_to(name):
    try:
        return gdb.lookup_type(name).pointer()
    except gdb.error:
        raise gdb.GdbError(f"janus: {name} is not in the debug information") from None


def fiber_from(argument):
    if not argument:
        raise gdb.GdbError("janus: which fiber? Give an expression for a janus_fiber pointer.")
    fiber = gdb.parse_and_eval(argument).cast(pointer_to("struct janus_fiber"))
    try:
        fiber.dereference().fetch_lazy()
    except gdb.MemoryError as error:
        raise gdb.GdbError(f"janus: no fiber there: {error}") from None
    return fiber


def state_of(fiber):
    state = int(fiber["state"])
    return STATES[state] if state < len(STATES) else f"? ({state})"


def stack_of(fiber):
    """(lowest address, end), or None while it has no stack."""
    stack = fiber["stack"]
    if int(stack) == 0:
        return None
    top = int(stack["top"])
    return top - int(stack["slab"]["class"]["stack_bytes"]), top


def number(register):
    return int(gdb.newest_frame().read_register(register)) & (2**64 - 1)


class Kept:
    """Puts the selected thread and frame back."""

    def __enter__(self):
        self.thread, self.level = gdb.selected_thread(), gdb.selected_frame().level()

    def __exit__(self, *_):
        self.thread.switch()
        gdb.invalidate_cached_frames()
        frame = gdb.newest_frame()
        for _ in range(self.level):
            frame = frame.older()
        frame.select()


def thread_on(low, end):
    """The thread whose stack pointer is in this range."""
    _, sp, _ = machine()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        if low <= number(sp) < end:
            return thread
    return None


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Unwinder(gdb.unwinder.Unwinder):
    """Says that the current thread's innermost frame was called by the context at `saved`."""

    def __init__(self, saved):
        super().__init__("janus-fiber")
        self.counter, self.pointer, self.goes_on = machine()
        self.innermost = number(self.counter), number(self.pointer)
        self.saved = saved.cast(pointer_to("struct jrt_ctx_frame"))

    def __call__(self, pending):
        pc, sp = pending.read_register(self.counter), pending.read_register(self.pointer)
        if (int(pc) & (2**64 - 1), int(sp) & (2**64 - 1)) != self.innermost:
            return None
        caller = pending.create_unwind_info(FrameId(self.saved.cast(sp.type), pc))
        caller.add_saved_register(self.counter, self.saved[self.goes_on].cast(pc.type))
        caller.add_saved_register(self.pointer, (self.saved + 1).cast(sp.type))
        word = gdb.lookup_type("long")
        for field in self.saved.dereference().type.fields():
            value = self.saved[field.name]
            if re.fullmatch(r"d\d+", field.name):
                self.add_vector(pending, caller, field.name[1:], int(value))
            elif re.fullmatch(r"r\w+|x\d+", field.name) and field.name != self.counter:
                caller.add_saved_register(field.name, value.cast(word))
        return caller

    def add_vector(self, pending, caller, which, low_half):
        """ARM: only the low half is kept by a switch. The rest is shown as zero."""
        for name in (f"z{which}", f"v{which}"):  # with and without SVE
            try:
                kind = pending.read_register(name).type
            except ValueError:
                continue
            data = low_half.to_bytes(8, "little").ljust(kind.sizeof, b"\0")
            caller.add_saved_register(name, gdb.Value(data, kind))
            return


@contextlib.contextmanager
def called_from(saved):
    """While this lasts, gdb believes that the current thread was called by the context at `saved`.
    The value is the number of frames that are still the thread's own."""
    unwinder = Unwinder(saved)
    with Kept():
        gdb.unwinder.register_unwinder(None, unwinder, replace=True)
        gdb.invalidate_cached_frames()
        try:
            frame, own = gdb.newest_frame(), 1
            while frame.type() == gdb.INLINE_FRAME:
                frame, own = frame.older(), own + 1
            yield own
        finally:
            unwinder.enabled = False


def backtrace_from(saved):
    """gdb's own backtrace, beginning behind the thread's frame."""
    with called_from(saved) as skip:
        text = gdb.execute("backtrace", to_string=True)
    lines = re.split(r"^(?=#\d)", text, flags=re.M)[1 + skip :]
    for level, line in enumerate(lines):
        print(re.sub(r"^#\d+ *", f"#{level}".ljust(4), line), end="")


def show_backtrace(fiber):
    stack = stack_of(fiber)
    if stack is None:
        print(f"It is {state_of(fiber)} and has no stack.")
        return
    with Kept():
        thread = thread_on(*stack)
    if thread is not None:
        print(f"It runs on thread {thread.num}; see there.")
        return
    if state_of(fiber) == "running":
        print("It waits for a fiber that it resumed.")
    backtrace_from(fiber["context"]["sp"])


class JanusPrefix(gdb.Command):
    """Commands for janusrt."""

    def __init__(self):
        super().__init__("janus", gdb.COMMAND_STACK, prefix=True)


class JanusFiber(gdb.Command):
    """Show a fiber: number, name, state, stack and backtrace.
Usage: janus fiber FIBER
FIBER is an expression for a janus_fiber pointer."""

    def __init__(self):
        super().__init__("janus fiber", gdb.COMMAND_STACK, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        fiber = fiber_from(argument)
        name = fiber["name"].string(errors="replace")
        print(f'fiber {int(fiber["id"])} "{name}", {state_of(fiber)}')
        stack = stack_of(fiber)
        if stack is not None:
            low, end = stack
            print(f"stack {low:#x} to {end:#x}, {(end - low) // 1024} KiB")
        show_backtrace(fiber)


class JanusFiberBacktrace(gdb.Command):
    """Show the backtrace of a suspended fiber.
Usage: janus fiber-bt FIBER
FIBER is an expression for a janus_fiber pointer."""

    def __init__(self):
        super().__init__("janus fiber-bt", gdb.COMMAND_STACK, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        show_backtrace(fiber_from(argument))


JanusPrefix()
JanusFiber()
JanusFiberBacktrace()
