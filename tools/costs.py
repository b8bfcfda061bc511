#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/costs.md: for each public call, how it pays for the time it takes.

usage: costs.py [--check] [root]

The tool reads the headers, the source and the tests. A call pays if its own file, the inline
functions it uses, or another public call that it makes, reaches one of PAYMENTS. A call that does
not pay stands in EXCEPTIONS with a reason. --check writes nothing and fails if the table differs.
"""

import pathlib
import re
import sys

# What a call of this function means for its caller.
PAYMENTS = {
    "op": ("jrt_fuel_one", "jrt_pay", "jrt_pay_ops", "jrt_pay_now", "jrt_chan_pay",
           "janus_fuel_take", "janus_check_n", "janus_check_slow"),
    "tolls": ("jrt_call_check", "jrt_stack_check", "jrt_sentence_check", "jrt_sync_begin",
              "jrt_turn_call", "jrt_outside_call", "jrt_outside_call_long"),
    "waits": ("jrt_task_park_cancellable", "jrt_sync_wait", "jrt_task_give_way", "jrt_give_way"),
}
# Reached on errors alone, or by a task that is already cancelled: such a path pays nothing.
BYPATHS = re.compile(r"jrt_(contract|invariant|demand|die|task_cancelled_or_end|purse_bear"
                     r"|plain_check)$")
# Calls that are written in assembly, and the function that they call.
ASSEMBLY = {"janus_check_stub": "jrt_check_taken"}
DEPTH = 5  # of calls between a public call and its payment

MEANS = {
    "op": "an op",
    "tolls": "tolls",
    "waits": "gives way",
    "cheap": "nothing, cheap",
    "paid": "nothing, paid for",
    "refused": "nothing, refused",
    "last": "nothing, does not return",
    "own": "nothing, the caller's own code",
}
ENDS_TURN = ("op", "tolls", "waits")
UNTESTED = ("refused", "last", "own")  # a task cannot repeat these, or nothing of ours runs

# Calls that neither pay nor wait: (kind, why). The tool refuses an entry whose call pays.
LOOK_UP = ("cheap", "a table look-up")
LOAD = ("cheap", "some loads")
STORES = ("cheap", "some stores")
EXCEPTIONS = {
    "janus_actor_current": ("cheap", "a keyed hash of two words"),
    "janus_actor_state_name": LOOK_UP,
    "janus_async_task": LOAD,
    "janus_backend_name": LOOK_UP,
    "janus_barrier_init": STORES,
    "janus_batch_begin": LOAD,
    "janus_broadcast_count": LOAD,
    "janus_broadcast_init": STORES,
    "janus_budget_get": LOAD,
    "janus_budget_limits_clamp": ("cheap", "five comparisons"),
    "janus_budget_limits_to_budget": LOAD,
    "janus_build_text": LOOK_UP,
    "janus_cancel_reason_text": LOOK_UP,
    "janus_cap_kind_name": LOOK_UP,
    "janus_cap_kind_rights": LOOK_UP,
    "janus_case_event": STORES,
    "janus_case_group": STORES,
    "janus_component_name": LOOK_UP,
    "janus_counted_code": STORES,
    "janus_condition_init": STORES,
    "janus_end_kind_name": LOOK_UP,
    "janus_event_init": STORES,
    "janus_event_is_set": LOAD,
    "janus_expect_failed": ("last", "the task panics, or the process ends"),
    "janus_explain_as": STORES,
    "janus_fault_claim": ("refused", "for signal handlers"),
    "janus_fiber_current": LOAD,
    "janus_fiber_id": LOAD,
    "janus_fiber_name": LOAD,
    "janus_fiber_state_name": LOOK_UP,
    "janus_fiber_state_of": LOAD,
    "janus_fiber_suspend": ("paid", "it ends a janus_fiber_resume, which tolled"),
    "janus_free": ("paid", "the allocation paid an op, and tolls for its pages"),
    "janus_group_init": STORES,
    "janus_guard_name": LOOK_UP,
    "janus_in_task": LOAD,
    "janus_letter_is_call": LOAD,
    "janus_mutex_init": STORES,
    "janus_mutex_init_recursive": STORES,
    "janus_mutex_is_abandoned": LOAD,
    "janus_now_ns": ("cheap", "a look at the clock"),
    "janus_nursery_deadline": LOAD,
    "janus_nursery_state_name": LOOK_UP,
    "janus_once_init": STORES,
    "janus_panic": ("last", "the task ends"),
    "janus_hold_pass": ("cheap", "a load; in a simulated run another worker goes on"),
    "janus_point": ("cheap", "a load; an explorer may let others run"),
    "janus_profile_cap_defaults": LOOK_UP,
    "janus_profile_limits": LOOK_UP,
    "janus_profile_name": LOOK_UP,
    "janus_profile_pool": LOOK_UP,
    "janus_profile_stack_bytes": LOOK_UP,
    "janus_profile_yield_interval": LOOK_UP,
    "janus_rest_sleep": ("cheap", "a look at the clock"),
    "janus_result_kind_text": LOOK_UP,
    "janus_right_name": LOOK_UP,
    "janus_rwlock_init": STORES,
    "janus_rwlock_is_abandoned": LOAD,
    "janus_scheduler_trace_hash": ("cheap", "a load for each worker"),
    "janus_scheduler_worker_count": LOAD,
    "janus_semaphore_init": STORES,
    "janus_semaphore_permits": LOAD,
    "janus_shield_end": ("paid", "the janus_shield_begin tolled"),
    "janus_status_name": LOOK_UP,
    "janus_status_text": LOOK_UP,
    "janus_task_current": LOAD,
    "janus_task_current_id": LOAD,
    "janus_task_id_of": LOAD,
    "janus_task_is_finished": LOAD,
    "janus_task_local": LOAD,
    "janus_task_state_name": LOOK_UP,
    "janus_token_check": LOAD,
    "janus_token_is_cancelled": LOAD,
    "janus_token_reason": LOAD,
    "janus_token_retain": ("cheap", "one atomic addition"),
    "janus_version": LOOK_UP,
    "janus_waitpoint_init": STORES,
    "janus_yield_interval": LOAD,
}

# Calls that pay, and that no row of the tests repeats: why not.
NOT_REPEATED = {
    "janus_nursery_open_in": "a task gets STATE",
}

HEADING = """<!-- SPDX-License-Identifier: MIT -->
<!-- tools/costs.py writes this file. Do not edit it. -->
# What each call costs its task, and how a turn ends

A turn of a task lasts about 20 microseconds. The library cannot interrupt native code, so a turn
ends inside a call. The table says for each public call how it pays:

- **an op**: the call takes an op from the task's budget. When the slice is used up, others run.
- **tolls**: the call costs no op. After some tolls it looks at the clock; when the turn is over,
  others run before the call does anything.
- **gives way**: the call itself lets others run, or waits.
- **nothing**: the row says why. Cheap calls take less than 0.25 microseconds; a loop of them is a
  loop of native code. Calls that are paid for undo what another call paid.

A call that lasts longer than a turn is repaid: the others get as much time before its task goes on.

The last column names the test row that repeats the call beside a neighbour on one worker
(`tests/task/calls*_test.c`). The neighbour's share of the CPU must be at least 0.38. Rows in
`calls_cheap_test` measure the CPU time of cheap calls.
"""


def plain(text):
    """C text without comments, string literals, attributes and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.M)
    return re.sub(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s?", "", text)


def functions(text):
    """{name: body} of the functions defined in C text."""
    found = {}
    text = plain(text)
    start = re.compile(r"^[A-Za-z_][^;{}()=]*?\b(\w+)\s*\((?:[^;{}()]|\([^;{}()]*\))*\)\s*\{", re.M)
    for match in start.finditer(text):
        end, depth = match.end(), 1
        while depth > 0 and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found[match.group(1)] = text[match.end() : end - 1]
    return found


class Tree:
    """All functions of the library, and how each public call pays."""

    def __init__(self, root):
        self.files, self.public, self.headers = {}, {}, {}
        paths = sorted(root.glob("include/janusrt/*.h")) + sorted(root.glob("src/*/*.[ch]"))
        for path in paths:
            if "aarch64" in path.name:
                continue
            name = path.relative_to(root).as_posix()
            self.files[name] = functions(path.read_text(encoding="utf-8"))
        self.where = {}
        for name, found in self.files.items():
            for function in found:
                self.where.setdefault(function, []).append(name)
        self.kinds = {name: kind for kind, names in PAYMENTS.items() for name in names}

    def find(self, function, file):
        """The file that defines what `file` calls by this name; None: none that is followed."""
        if function in self.files[file]:
            return file
        places = self.where.get(function, [])
        for place in places:
            if place.endswith(".h") or function.startswith(("janus_", "jrt_")):
                return place
        return None

    def payments(self, function, file):
        """The kinds of payment that the call reaches, nearest calls first."""
        kinds, seen, level = set(), {function}, [(function, file)]
        for _ in range(DEPTH + 1):
            below = []
            for name, place in level:
                body = self.files[place][name]
                if re.search(r"worker->tolls\b", body):
                    kinds.add("tolls")
                for called in re.findall(r"\b([a-z_]\w*)\b(?=\s*[(,)])", body):
                    if called in self.kinds:
                        kinds.add(self.kinds[called])
                    elif called not in seen and not BYPATHS.match(called):
                        seen.add(called)
                        where = self.find(called, place)
                        if where is not None:
                            below.append((called, where))
            level = below
        return kinds


class Header:
    """The public calls that a header declares: {name: "function", "inline" or "macro"}."""

    def __init__(self, path):
        self.name = path.name
        self.text = path.read_text(encoding="utf-8")
        code = re.sub(r"/\*.*?\*/", " ", self.text, flags=re.S)
        self.calls = {}
        for line in re.findall(r"\bJANUS_API\b([^;{}]*);", code):
            found = re.match(r"[^()]*?\b(janus_\w+)\s*\(", re.sub(r"__attribute__\(.*", "", line))
            if found:
                self.calls[found.group(1)] = "function"
        for name in re.findall(r"^static inline [^;{}]*?\b(janus_\w+)\(", code, flags=re.M):
            if not name.endswith("_"):
                self.calls[name] = "inline"
        self.macros = {}
        for name, body in re.findall(r"^#define (\w+)\([^)]*\)((?:.*\\\n)*.*)", code, flags=re.M):
            self.macros[name] = body
            if name.startswith("janus_") or name in ("JANUS_NURSERY", "JANUS_TIMEOUT"):
                self.calls[name] = "macro"

    def yields(self, call):
        """The header's answer "Yields" for this function."""
        at = re.search(rf"\b{call}\(", re.sub(r"/\*.*?\*/", lambda m: " " * len(m.group()),
                                               self.text, flags=re.S))
        comment = re.findall(r"Yields:\s*(.*)", self.text[: at.start()]) if at else []
        return comment[-1] if comment else ""


def test_rows(root):
    """{call: "file: row"} of the calls that rows of the tests make, and what is wrong with rows."""
    rows, wrong = {}, []
    for path in sorted(root.glob("tests/task/calls*_test.c")):
        text = path.read_text(encoding="utf-8")
        listed = set(re.findall(r"\bROW\((\w+)\)", text))
        for match in re.finditer(r"^CALL\(\s*(\w+),", text, flags=re.M):
            end, depth = match.end(), 1
            while depth > 0:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            row = match.group(1)
            if row not in listed:
                wrong.append(f"{path.name}: {row} is in no ROW")
            for call in re.findall(r"\b(?:janus_\w+|JANUS_NURSERY|JANUS_TIMEOUT)\b",
                                   text[match.end() : end]):
                rows.setdefault(call, {}).setdefault(path.stem, row)
    return rows, wrong


# Headers of libjanusrt-http, libjanusrt-tls and libjanusrt-lang.
OTHER_LIBRARIES = ("http.h", "http_client.h", "tls.h", "websocket.h", "wire.h", "lang.h")


class Costs:
    """Every public call, how it pays, and what is wrong."""

    def __init__(self, root):
        self.tree = Tree(root)
        # These belong to another library, which pays through the calls that it makes.
        self.headers = [Header(path) for path in sorted(root.glob("include/janusrt/*.h"))
                        if path.name not in OTHER_LIBRARIES]
        self.macros = {}
        for header in self.headers:
            self.macros.update(header.macros)
        self.declared = {}
        for header in self.headers:
            for call, form in header.calls.items():
                self.declared.setdefault(call, form)
        self.expands = {}  # {call: macros that expand to it}
        for call, form in self.declared.items():
            if form == "macro":
                for name in self.inside(call, set()):
                    self.expands.setdefault(name, []).append(call)
        self.rows, self.wrong = test_rows(root)
        symbols = (root / "tests/abi/exported-symbols.txt").read_text(encoding="utf-8").split("\n")
        self.exported = {name for name in symbols if name.startswith("janus_")} - {"janus_fuel"}
        functions_declared = {call for call, form in self.declared.items() if form == "function"}
        for call in sorted(self.exported ^ functions_declared):
            self.wrong.append(f"{call}: exported or declared, but not both")

    def inside(self, macro, seen):
        """The calls that a macro expands to."""
        seen.add(macro)
        found = set()
        for name in re.findall(r"\b\w+\b", self.macros[macro].replace("##", " ")):
            if name in self.tree.where and name.startswith("janus_"):
                found.add(name)
            elif name in self.macros and name not in seen:
                found |= self.inside(name, seen)
        if "JANUS_PASTE_(JANUS_NURSERY_" in self.macros[macro]:
            found |= self.inside("JANUS_NURSERY_ONE", seen)
        return found

    def kinds(self, call, form):
        if form == "macro":
            kinds = set()
            for name in self.inside(call, set()):
                kinds |= self.tree.payments(name, self.tree.where[name][0])
            return kinds
        call = ASSEMBLY.get(call, call)
        if call not in self.tree.where:
            self.wrong.append(f"{call}: nowhere defined")
            return set()
        return self.tree.payments(call, self.tree.where[call][0])

    def calls_ours(self, call):
        """Whether an inline function calls the library."""
        body = self.tree.files[self.tree.where[call][0]][call]
        called = [name for name in re.findall(r"\b(janus_\w+)\(", body) if name != call]
        return any(name in self.exported or
                   (name in self.tree.where and self.calls_ours(name)) for name in called)

    def describe(self, header, call, form):
        """(kind, why) of a call; what is wrong with it is noted."""
        kinds = self.kinds(call, form)
        kind = next((kind for kind in ENDS_TURN if kind in kinds), None)
        if kind is not None:
            if call in EXCEPTIONS:
                self.wrong.append(f"{call}: pays by now; take it out of EXCEPTIONS")
            answer = header.yields(call) if form == "function" else ""
            if answer.startswith("never") and call not in NOT_REPEATED:
                self.wrong.append(f"{header.name}: {call} can end the turn, but Yields says never")
            return kind, ""
        if call in EXCEPTIONS:
            return EXCEPTIONS[call]
        if form == "inline" and not self.calls_ours(call):
            return "own", ""
        self.wrong.append(f"{call}: neither pays nor has a reason in EXCEPTIONS")
        return "cheap", ""

    def row_of(self, call, kind):
        """The test row that repeats the call, or why none does."""
        rows = dict(self.rows.get(call, {}))
        for macro in self.expands.get(call, ()):
            rows = {**self.rows.get(macro, {}), **rows}
        cheap = rows.get("calls_cheap_test")
        beside = next((f"{file}: {row}" for file, row in rows.items()
                       if file != "calls_cheap_test"), None)
        if kind in ENDS_TURN and beside is not None:
            if call in NOT_REPEATED:
                self.wrong.append(f"{call}: a row repeats it; take it out of NOT_REPEATED")
            return beside
        if kind in ENDS_TURN and call in NOT_REPEATED:
            return NOT_REPEATED[call]
        if kind in ("cheap", "paid") and (cheap is not None or beside is not None):
            return f"calls_cheap_test: {cheap}" if cheap is not None else beside
        if kind not in UNTESTED:
            self.wrong.append(f"{call}: no row of tests/task/calls*_test.c repeats it")
        return ""

    def table(self):
        text, counts = [HEADING], {}
        for header in self.headers:
            if not header.calls:
                continue
            text.append(f"\n## {header.name}\n\n| call | pays | ends the turn | repeated by |\n"
                        "|---|---|---|---|\n")
            for call, form in sorted(header.calls.items()):
                kind, why = self.describe(header, call, form)
                counts[kind] = counts.get(kind, 0) + 1
                pays = MEANS[kind] + (f": {why}" if why else "")
                row = self.row_of(call, kind)
                text.append(f"| `{call}` | {pays} | {'yes' if kind in ENDS_TURN else 'no'} "
                            f"| {row} |\n")
        for call in sorted({*EXCEPTIONS, *NOT_REPEATED} - set(self.declared)):
            self.wrong.append(f"{call}: in a table of the tool, but no public call")
        text.append("\n## How many\n\n| pays | calls |\n|---|---|\n")
        text += [f"| {MEANS[kind]} | {counts[kind]} |\n" for kind in MEANS if kind in counts]
        return "".join(text)


def old_payments(tree):
    """Names in PAYMENTS that no file of the library defines any more."""
    names = sorted(name for names in PAYMENTS.values() for name in names)
    return [f"PAYMENTS: {name} is nowhere defined" for name in names if name not in tree.where]


def main(arguments):
    check = "--check" in arguments
    rest = [argument for argument in arguments if argument != "--check"]
    root = pathlib.Path(rest[0] if rest else pathlib.Path(__file__).resolve().parents[1])
    costs = Costs(root)
    costs.wrong += old_payments(costs.tree)
    text = costs.table()
    path = root / "docs/costs.md"
    if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
        costs.wrong.append("docs/costs.md is out of date: run tools/costs.py")
    if not check:
        path.write_text(text, encoding="utf-8")
    for line in costs.wrong:
        print(line)
    return 1 if costs.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
