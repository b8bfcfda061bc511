# SPDX-License-Identifier: MIT
"""What the gdb scripts here have in common: starting the program, going on, telling the result.

JANUS_TEST_EMULATOR is the command that runs programs of another machine, if that is needed.
"""

import os
import subprocess
import tempfile
import traceback

import gdb


class Failed(Exception):
    """The library, or the program, did something wrong."""


emulator = None  # the process, once it is started
folder = tempfile.TemporaryDirectory()


def quietly(command):
    return gdb.execute(command, to_string=True)


def emulated():
    return "JANUS_TEST_EMULATOR" in os.environ


def start_emulator():
    """It waits at a socket, which it makes when it is ready; until then connecting fails."""
    global emulator
    socket = os.path.join(folder.name, "socket")
    program = gdb.current_progspace().filename
    command = os.environ["JANUS_TEST_EMULATOR"].split() + ["-g", socket, program]
    # A CPU without SVE: on others gdb takes d8 to d15 for parts of longer registers, which it
    # cannot unwind.
    emulator = subprocess.Popen(command, env={**os.environ, "QEMU_CPU": "cortex-a72"})
    while emulator.poll() is None:
        try:
            quietly(f"target remote {socket}")
            return
        except gdb.error:
            os.sched_yield()
    raise Failed(f"{command[0]} ended with {emulator.returncode}")


def frames():
    """gdb's frames, innermost first."""
    frame = gdb.newest_frame()
    while frame is not None:
        yield frame
        frame = frame.older()


def start():
    """Runs the program up to main."""
    for setting in ("confirm off", "pagination off", "width 0", "height 0"):
        quietly(f"set {setting}")
    try:
        quietly("set suppress-cli-notifications on")  # or each step is shown
    except gdb.error:
        pass
    quietly("handle SIGSEGV SIGUSR1 nostop noprint pass")
    gdb.Breakpoint("main", internal=True, temporary=True)
    if emulated():
        start_emulator()
        quietly("continue")
    else:
        quietly("run")


def go_on():
    """To the next breakpoint; False when the program ended well instead."""
    quietly("continue")
    if gdb.selected_inferior().pid != 0:
        return True
    code = gdb.convenience_variable("_exitcode")
    if code is None or int(code) != 0:
        raise Failed(f"the program ended with {code}")
    return False


def run(sentence, test):
    """Runs a test, says how it went and ends gdb."""
    print("1..1")
    status = 1
    try:
        test()
        print(f"ok 1 - {sentence}")
        status = 0
    except Failed as failed:
        print(f"not ok 1 - {sentence}")
        print("\n".join(f"# {line}" for line in str(failed).split("\n")))
    except Exception:
        print(f"not ok 1 - {sentence}")
        print("\n".join(f"# {line}" for line in traceback.format_exc().split("\n")))
    try:
        quietly("kill")
    except gdb.error:
        pass  # nothing is left, or a core file
    if emulator is not None:
        emulator.kill()
        emulator.wait()
    folder.cleanup()
    gdb.execute(f"quit {status}")
