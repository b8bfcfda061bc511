#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the documents promise of programs, in the interpreter and in a build.

usage: requirements_test.py JANUSRT

Each case is a sentence, a program, and what it must print: the lines in this order, or in any
("any order"), the exit status, and a part of what stands on standard error. Blocks of the
documents are taken from documents/.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
JANUSRT = sys.argv[1]
SERVICE, CLUSTER, SOVEREIGN = ("{.profile: %s.}\n" % name for name in
                               ("service", "cluster", "sovereign"))
count = wrong = 0


def document(name):
    return (HERE / "documents" / f"{name}.jan").read_text()


def report(good, name, *lines):
    global count, wrong
    count += 1
    wrong += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in lines if not good else ():
        print("# " + str(line).replace("\n", "\n# "))


def run(*words, **environment):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, **environment})


TASKS = "".join(f"func {name}() do\n    print(\"{name}\")\nend\n" for name in ("task_a", "task_b"))
TASK = "func task() do\n    print(\"task\")\nend\n"
MAP = SOVEREIGN + document("parallel_map")
MAP_MAIN = """
func show(cap: CapSpawn, items: []i32) do
    var sum: i64 = 0
    let doubled = parallel_map(cap, items, |x| x * 2)
    for n in doubled do
        sum += i64(n)
    end
    print(str(doubled.len) + " " + str(sum))
end
func main() do
    let items = array(i32, 1000)
    for i in 0..1000 do
        items[i] = i32(i)
    end
    let cap = CapSpawn{ max_tasks: 10 }
    show(cap, items[0..0])
    show(cap, items[7..8])
    show(cap, items)
end
"""
LIVE = SERVICE + """
func wait_for(never: channel i64) do
    let n = try never.recv()
    print(str(n))
end
async func main() do
    let never = channel(i64, 1)
    nursery do
        for i in 0..COUNT do
            try spawn wait_for(never)
        end
        print("all live")
        cancel()
    end
end
"""
MANY = SERVICE + """
func one(counts: channel i64) do
    try counts.send(1)
end
func all(counts: channel i64) do
    nursery do
        for i in 0..10000 do
            spawn one(counts)
        end
    end
    counts.close()
end
async func main() do
    let counts = channel(i64, 10)
    var sum = 0
    nursery do
        spawn all(counts)
        for n in counts do
            sum += n
        end
    end
    print(str(sum))
end
"""
AWAIT = SERVICE + """
async func minus() -> i64 do
    return -5
end
async func main() do
    nursery do
        let task = async minus()
        print(str(await task))
    end
    print("success")
end
"""
RETURN = SERVICE + """
func slow() do
    for i in 0..100 do
        yield
    end
    print("child")
end
func join_first() -> i64 do
    nursery do
        spawn slow()
        return 7
    end
end
func main() do
    print(str(join_first()))
end
"""
RANGES = """
func main() do
    var line = ""
    for i in 0..3 do line = line + str(i) end
    for i in 0..<3 do line = line + str(i) end
    for i in 0..=3 do line = line + str(i) end
    let items = [1, 2, 3]
    for i in 0..items.len do line = line + str(items[i]) end
    print(line + " " + str(items[1..3].len))
end
"""
BLOCKS = SERVICE + """
func f(n: i64) { if n == 1 { print("one") } else do print("other") end }
func main() {
    nursery { spawn f(1) }
    nursery do
        spawn { f(2) }
    end
}
"""
COUNTERS = document("actor_system").replace("""        supervisor.spawn(Counter.new())
        supervisor.spawn(Counter.new())
        supervisor.spawn(Counter.new())
""", """        let a = supervisor.spawn(Counter.new())
        let b = supervisor.spawn(Counter.new())
        let c = supervisor.spawn(Counter.new())
        for i in 0..100 do
            a.increment()
            if i % 2 == 0 { b.increment() }
        end
        print(str(await a.get()) + " " + str(await b.get()) + " " + str(await c.get()))
""")
SANDBOX = SOVEREIGN + """
func plugin(n: i64) do
    WORK
end
func wait_for(never: channel i64) do
    let n = try never.recv()
    print(str(n))
end
func run_plugin(cap: CapBudget) do
    let restricted_cap = CapSpawn{
        max_tasks: 10,
        task_budget: cap.toBudget().with_syscalls(0)
    }
    nursery with restricted_cap do
        BODY
    end
end
func main() do
    let channels = CapChannel{ max_channels: 1 }
    let cap = CapBudget{ cpu_budget: 1_000_000, spawn_limit: 100, channel_budget: 100,
                         memory_budget: 100MB, syscall_budget: 1000 }
    run_plugin(cap)
    print("end")
end
"""


def sandbox(work, body):
    return SANDBOX.replace("WORK", work).replace("BODY", body)


OVERRUN = SERVICE + """
func main() do
    let items = array(i64, 1000)
    loop do
        for i in 0..1000 do
            items[i] += i
        end
    end
end
"""
CASES = [
    ("a worker with a spawn capability starts two tasks in source",
     SOVEREIGN + document("capspawn_usage").split("// :service")[0] + TASKS +
     "func main() do\n    worker(CapSpawn{ max_tasks: 2 })\nend\n",
     "any order", ["task_a", "task_b"], 0, ""),
    ("in :service a nursery starts tasks without a capability",
     SERVICE + "// :service" + document("capspawn_usage").split("// :service")[1] + TASKS,
     "", ["task_a"], 0, ""),
    ("a function that was passed a capability spawns in source",
     document("sovereign_grant") + TASK, "", ["task"], 0, ""),
    ("parallel_map gives 2, 4, 6, 8",
     MAP + document("parallel_map_main").rstrip().removesuffix("end") +
     "    for n in result do print(str(n)) end\nend\n", "", ["2", "4", "6", "8"], 0, ""),
    ("parallel_map works on 0, 1 and 1000 items", MAP + MAP_MAIN,
     "", ["0 0", "1 14", "1000 999000"], 0, ""),
    ("in :service main and 99 children live", LIVE.replace("COUNT", "99"), "", ["all live"], 0, ""),
    ("`try spawn` of the 101st live task is refused with TaskLimitExceeded",
     LIVE.replace("COUNT", "100"), "", [], 1, "error.TaskLimitExceeded"),
    ("ten thousand spawns in a row pass", MANY, "", ["10000"], 0, ""),
    ("await gives -5, and the nursery succeeds", AWAIT, "", ["-5", "success"], 0, ""),
    ("`return` in a nursery joins first", RETURN, "", ["child", "7"], 0, ""),
    ("`..` and `..<` leave the end out, and `..=` has it", RANGES, "",
     ["0120120123123 2"], 0, ""),
    ("both forms of blocks run", BLOCKS, "", ["one", "other"], 0, ""),
    ("two children that succeed, in source", SERVICE + document("basic_completion") +
     "\nprint(\"success\")\n", "", ["success"], 0, ""),
    ("the error of a child reaches the caller of its nursery, and the message names it",
     SERVICE + "func parent() -> !void do\n" + document("child_error") +
     "\nprint(\"not reached\")\nend\nfunc main() do\n    try parent()\nend\n", "", [], 1,
     "error.Failed: main ended with it"),
    ("a child that yields for ever is cancelled in source",
     SERVICE + document("explicit_cancel") + "\nprint(\"cancelled\")\n", "", ["cancelled"], 0, ""),
    ("an outer cancel reaches the inner child in source",
     SERVICE + document("nested_cancel").replace("outer_", "").replace("inner_", "") +
     "\nprint(\"cancelled\")\n", "", ["cancelled"], 0, ""),
    ("inner done, inner cleanup, outer cleanup: in this order",
     SERVICE + document("cleanup_order").replace("outer_", "").replace("inner_", "").replace(
         "log(", "print("), "", ["inner done", "inner cleanup", "outer cleanup"], 0, ""),
    ("counters count, answer and end with their supervisor", COUNTERS, "", ["100 50 0"], 0, ""),
    ("the sandbox of the documents runs ten tasks",
     sandbox("yield", "for i in 0..100 do\n spawn plugin(i)\n end"), "", ["end"], 0, ""),
    ("the sandbox refuses the eleventh task",
     sandbox("yield", "let never = channel(i64, 1)\n for i in 0..11 do\n"
             " try spawn wait_for(never)\n end").replace(
                 "cap: CapBudget)", "cap: CapBudget, channels: CapChannel)").replace(
                     "run_plugin(cap)", "try run_plugin(cap, channels)"),
     "", [], 1, "error.TaskLimitExceeded"),
    ("the sandbox refuses input and output",
     sandbox("print(str(n))", "spawn plugin(1)"), "", [], 3, "budget: syscalls"),
    ("a budget of 100,000 ops stops a program at one line, in both executors", OVERRUN, "", [], 3,
     "main has used up its budget: ops, 100000 of 100000 used"),
]


def check(folder, case):
    sentence, text, order, lines, status, said = case
    (folder / "case.jan").write_text(text)
    environment = {"JANUS_BUDGET": "ops=100000"} if text is OVERRUN else {}
    built = run(JANUSRT, "build", "--cc=gcc", "-O1", "case.jan", "-o", "case")
    if built.returncode != 0:
        report(False, sentence, built.stderr)
        return
    for words in ([JANUSRT, "run", "case.jan"], ["./case"]):
        done = run(*words, **environment)
        found = done.stdout.splitlines()
        if order:
            found.sort()
        if found != lines or done.returncode != status or said not in done.stderr:
            report(False, sentence, words, f"exit {done.returncode}", done.stdout, done.stderr)
            return
    report(True, sentence)


LOOP = "%sfunc main() do\n    var n = 0\n    while n < %d do\n        n += 1\n    end\nend\n"


def ops_of(rounds, interval):
    with open("loop.jan", "w", encoding="utf-8") as file:
        file.write(LOOP % (SERVICE, rounds))
    done = run(JANUSRT, "run", f"--interval={interval}", "loop.jan", JANUSRT_LANG_REPORT="1")
    return int(done.stderr.split("ops ")[1].split()[0])


def intervals():
    for interval in (1024, 512, 7):
        none = ops_of(0, interval)
        found = [ops_of(rounds, interval) - none for rounds in (1, 1023, 1024, 10000)]
        report(found == [1, 1023, 1024, 10000],
               f"a loop pays for each round, at interval {interval}", found)
    done = run(JANUSRT, "run", "--interval=0", "loop.jan")
    report(done.returncode == 2 and "--interval" in done.stderr, "an interval of 0 is refused",
           done.stderr)


def prelude():
    """The page lists what the prelude offers."""
    source = (HERE.parent.parent / "lang/host/prelude.c").read_text()
    page = (HERE.parent.parent / "docs/lang/README.md").read_text()
    offered = re.findall(r'(?:CODE\(|\.value = )"([^"]+)"', source)
    missing = [one for one in offered if f"`{one}`" not in page]
    report(len(offered) > 10 and not missing, "docs/lang/README.md lists the prelude", missing)


def main():
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for case in CASES:
            check(pathlib.Path(name), case)
        intervals()
        prelude()
        os.chdir("/")
    print(f"1..{count}")
    return 1 if wrong else 0


sys.exit(main())
