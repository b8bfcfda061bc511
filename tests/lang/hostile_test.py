#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs, names and files that mean harm: each gets a sentence, or pays for what it takes.

usage: hostile_test.py JANUSRT
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

JANUSRT = sys.argv[1]
count = wrong = 0

HELLO = 'func main() do print("hello") end\n'

BIG = """{.profile: service.}
func big(doublings: i64) -> str do
    var text = "0123456789abcdef"
    for i in 0..doublings do text = text + text end
    return text
end
"""

# Each loses 100 MiB of texts that nobody receives. The scheduler lends 64 MiB.
LOST = {
    "an async call that nobody awaits": BIG + """
async func make() -> str do return big(14) end
async func main() do
    for i in 0..400 do
        nursery do let handle = async make() end
    end
    log("done")
end
""",
    "a channel that ends with values in it": BIG + """
func once() do
    let queue = channel(str, 4)
    let text = big(12)
    for i in 0..4 do try queue.send(text) end
end
func main() do
    for i in 0..400 do
        nursery do spawn once() end
    end
    log("done")
end
""",
}

# What a thousand rounds of it cost at least, for a text of 1 MiB.
WORK = {
    "a comparison": "if left == right do n += 1 end",
    "a search": 'n += find(left, "zz")',
    "an array": "let made = array(u8, 1048576)",
}


BOSS = """module "m1.jan" profile service level Mid interval 1024

actor A { n: i64 } init @A.init { inc: fn() -> void = @A.inc }
main @main

func @w(%s: Supervisor) -> !void tenancy CPU_Parallel {
bb0:
  %1 = Nursery_Begin
  %2 = Actor_New : start A
  %3 = Supervisor_Spawn %s, %2
  Branch_Error %3, bb1, bb2
bb1:
  %4 = Error_Of %3
  Nursery_Cancel %1
  %5 = Nursery_End %1
  Fail %4
bb2:
  %a = Value_Of %3
  %6 = Actor_Send @A.inc, %a
  %7 = Nursery_End %1
  Branch_Error %7, bb3, bb4
bb3:
  %8 = Error_Of %7
  Fail %8
bb4:
  Return
}

func @main() -> !void tenancy CPU_Serial {
bb0:
  %s = Supervisor_New
  %1 = Nursery_Begin
  Budget_Check 0
  %2 = Spawn @w, %s
  Budget_Check 0
  %3 = Spawn @w, %s
  Budget_Check 0
  %4 = Spawn @w, %s
  %5 = Nursery_End %1
  Branch_Error %5, bb1, bb2
bb1:
  %6 = Error_Of %5
  Fail %6
bb2:
  Return
}

func @A.inc() -> void tenancy CPU_Parallel of A {
bb0:
  %1 = State_Get .n
  %2 = Const 1 : i64
  %3 = Add %1, %2
  State_Set .n, %3
  Return
}

func @A.init() -> void tenancy CPU_Parallel of A {
bb0:
  %1 = Const 0 : i64
  State_Set .n, %1
  Return
}
"""


def report(good, name, *lines):
    global count, wrong
    count += 1
    wrong += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in lines if not good else ():
        print("# " + str(line).replace("\n", "\n# "))


def run(*words, **more):
    environment = {**os.environ, **more}
    return subprocess.run([JANUSRT, *words], capture_output=True, text=True, env=environment,
                          timeout=300, check=False)


def lost_values():
    for name, text in LOST.items():
        pathlib.Path("lost.jan").write_text(text)
        done = run("run", "lost.jan")
        report(done.returncode == 0 and done.stderr == "done\n", f"{name} gives its memory back",
               done.stderr)


def paid_work():
    for name, line in WORK.items():
        pathlib.Path("work.jan").write_text(BIG + f"""
func main() do
    let left = big(16)
    let right = big(16)
    var n = 0
    for i in 0..100 do {line} end
end
""")
        done = run("run", "work.jan", JANUSRT_LANG_REPORT="1")
        ops = re.search(r"ops (\d+)", done.stderr)
        report(done.returncode == 0 and ops and int(ops[1]) > 100 * 4096,
               f"{name} of a mebibyte is paid by its bytes", done.stderr)


def names():
    folder = pathlib.Path("x*/ int injected; ")
    folder.mkdir(parents=True)
    for path in (folder / "a.jan", pathlib.Path('q"\\n?\nz.jan'),
                 pathlib.Path("$(touch b) ; c.jan")):
        path.write_text(HELLO)
        made = run("build", "--cc=gcc", "-o", "named", str(path))
        done = subprocess.run(["./named"], capture_output=True, text=True, check=False) \
            if made.returncode == 0 else made
        report(done.stdout == "hello\n" and made.stderr == "", f"a file of the name {path.name!r} "
               f"in {path.parent.name!r} is built", made.stderr)
    report(not pathlib.Path("b").exists(), "no shell reads a name")


def outputs():
    source = pathlib.Path("kept.jan")
    source.write_text(HELLO)
    pathlib.Path("link").symlink_to("kept.jan")
    for words in (["-o", "kept.jan"], ["-c", "-o", "kept.jan"], ["-c", "-o", "link"]):
        done = run("build", "--cc=gcc", *words, "kept.jan")
        report(done.returncode == 2 and "is the source" in done.stderr
               and source.read_text() == HELLO, f"build {' '.join(words)} keeps the source",
               done.stderr)


def foreign_supervisor():
    """The checker refuses it, the verifier does not: the supervisor itself does."""
    pathlib.Path("boss.ir").write_text(BOSS)
    for _ in range(5):
        done = run("run", "boss.ir", JANUS_WORKERS="4")
        report(done.returncode == 1 and "it began in task main > w" in done.stderr
               and "error.State" in done.stderr,
               "a task cannot use the supervisor of another", done.stderr)


def wider_capability():
    pathlib.Path("wide.jan").write_text("""{.profile: sovereign.}
func work() do end
func many(cap: CapBudget, tasks: i64) do
    let spawns = CapSpawn{ max_tasks: tasks, task_budget: Budget{ ops: 500, memory: 0,
                           spawn_count: 0, channel_ops: 0, syscalls: 0 } }
    nursery with spawns do
        for i in 0..tasks do spawn work() end
    end
    log("made")
end
func main() do
    let some = CapSpawn{ max_tasks: 100 }
    let cap = CapBudget{ cpu_budget: 1000, memory_budget: 0, spawn_limit: 3, channel_budget: 0,
                         syscall_budget: 9 }
    many(cap, 3)
    many(cap, 4)
end
""")
    done = run("run", "wide.jan")
    report(done.returncode == 1 and done.stderr.count("made\n") == 1 and "narrower" in done.stderr,
           "a CapBudget of three spawns makes no CapSpawn of four tasks", done.stderr)


def names_of_libraries():
    """A method must be the plugin's own function, not one of the C library."""
    pathlib.Path("plugin.c").write_text("int own(int n) { return n + 1; }\n")
    made = run("cc", "--untrusted", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so")
    if made.returncode != 0:
        print(f"# no plugin: {made.stderr.strip()}")
        return
    for method, says in (("own", "3"), ("abs", "does not export abs"),
                         ("putchar", "does not export putchar")):
        pathlib.Path("native.jan").write_text(f"""{{.profile: sovereign.}}
interface Native do
    func {method}(n: i32) -> i32
end
func use(native: Native) -> i32 do return native.{method}(i32(2)) end
func main() do
    let plugin = load_untrusted_plugin("plugin.so")
    log(str(use(plugin)))
end
""")
        done = run("run", "native.jan")
        report(says in done.stderr, f"a plugin's method {method!r} says {says!r}", done.stderr)


def two_owners():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    pathlib.Path("owners.jan").write_text("{.profile: service.}\n" + f"""
func second(connection: Connection) do
    try connection.write_response("second")
end
func main() do
    let server = try bind("127.0.0.1:{port}")
    log("ready")
    let connection = try server.accept()
    log(connection.path())
    nursery do spawn second(connection) end
end
""")
    with subprocess.Popen([JANUSRT, "run", "owners.jan"], stderr=subprocess.PIPE,
                          text=True) as server:
        server.stderr.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=300):
            said = server.stderr.read()
    report(server.returncode == 1 and "error.InUse" in said,
           "a connection that one task has used is closed to others", said)


def large_frame():
    """A frame of 4 MiB must meet the guard page of its stack, and not step over it."""
    structs = "".join(f"struct S{i} {{ a: S{i - 1}, b: S{i - 1} }}\n" for i in range(1, 19))
    pathlib.Path("large.jan").write_text("{.profile: service.}\nstruct S0 { a: i64, b: i64 }\n"
                                         + structs + """
func one(x: S18) -> i64 do
    var y = x
    return 1
end
func main() do
    let x = array(S18, 1)
    nursery do spawn one(x[0]) end
end
""")
    made = run("build", "--cc=gcc", "-O1", "-o", "large", "large.jan")
    done = subprocess.run(["./large"], capture_output=True, text=True, check=False)
    report(made.returncode == 0 and done.returncode == 1 and "stack overflowed" in done.stderr,
           "a frame larger than the stack is a panic", made.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for part in (lost_values, paid_work, names, outputs, foreign_supervisor,
                     wider_capability, names_of_libraries, two_owners,
                     large_frame):
            part()
        os.chdir("/")
    print(f"1..{count}")
    return 1 if wrong else 0


sys.exit(main())
