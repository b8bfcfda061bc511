#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the names in the public headers: one word means one thing.

usage: names.py [root]

The rules stand in include/janusrt/janus.h. The tool reads the headers as the compiler does, after
`cc -E` has expanded the tables of constants (CC names another compiler). What a rule allows stands
in the tables below, each entry with its reason. An entry that nothing needs is an error, too.
"""

import os
import pathlib
import re
import subprocess
import sys

# Enums whose constants do not begin with the enum's name.
SHORT_ENUMS = {
    "janus_status": ("JANUS_", "statuses are what every caller compares with"),
    "janus_io_way": ("JANUS_IO_", "the two directions are in most calls"),
    "janus_io_right": ("JANUS_IO_MAY_", "it reads as a sentence"),
    "janus_actor_right": ("JANUS_ACTOR_MAY_", "it reads as a sentence"),
    "janus_actor_next": ("JANUS_ACTOR_", "it is what every handler returns"),
}

# Calls that give the current object itself, by a status.
CURRENT = {"janus_actor_current"}

# Calls whose status may be dropped without a word, and why.
ENDS = "it ends or gives back something; it is refused for a mistake of the caller alone"
ASKS = "it asks for an end; what has ended already needs none"
MAY_DROP = {
    "janus_actor_cancel_timer": ENDS,
    "janus_actor_unwatch": ENDS,
    "janus_audit_destroy": ENDS,
    "janus_cap_release": ENDS,
    "janus_cap_release_in": ENDS,
    "janus_cap_table_destroy": ENDS,
    "janus_channel_close": ENDS,
    "janus_channel_destroy": ENDS,
    "janus_fiber_destroy": ENDS,
    "janus_fiber_pool_destroy": ENDS,
    "janus_group_done": ENDS,
    "janus_io_close": ENDS,
    "janus_io_inspect": "it is refused for a mistake of the caller alone",
    "janus_io_set_deadline": "it is refused for a mistake of the caller alone",
    "janus_io_shutdown": ENDS,
    "janus_mutex_repaired": ENDS,
    "janus_mutex_unlock": ENDS,
    "janus_nursery_close": ENDS,
    "janus_rwlock_repaired": ENDS,
    "janus_rwlock_unlock": ENDS,
    "janus_scheduler_destroy": ENDS,
    "janus_scheduler_stop": ENDS,
    "janus_semaphore_release": ENDS,
    "janus_signal_release": ENDS,
    "janus_token_remove": ENDS,
    "janus_trace_destroy": ENDS,
    "janus_nursery_cancel": ASKS,
    "janus_nursery_cancel_child": ASKS,
    "janus_nursery_cancel_exhausted": ASKS,
    "janus_token_cancel": ASKS,
    "janus_group_add": "it is refused for a mistake of the caller alone",
    "janus_scheduler_dump": "a report for people; nothing depends on it",
    "janus_check_slow": "janus_check and its kin return it, and they must not be dropped",
}

# Structs that a call fills or reads, and that do not begin with struct_bytes.
PLAIN = {
    "janus_await_result": "two registers; the documents fix it",
    "janus_nursery_result": "a call that ends a scope is not refused for a size",
}
GROWING = re.compile(r"janus_\w+_(options|grant|info|result)$")

# Verbs that belong to some nouns only: verb -> (nouns, what it means).
VERBS = {
    "open": ({"nursery", "supervisor", "dir", "file", "datagram"},
             "begins a scope in the caller's memory, or opens a descriptor; else create"),
    "close": ({"nursery", "channel", "io"}, "says that no more follows; else destroy"),
    "read": ({"trace", "io", "io_try"}, "reads from a file descriptor; else inspect"),
    "stats": (set(), "is called inspect"),
    "books": (set(), "is called inspect"),
    "snapshot": (set(), "is called inspect"),
    "free": ({""}, "is janus_free alone; else destroy"),
    "fini": (set(), "is called destroy"),
    "delete": (set(), "is called destroy"),
    "new": (set(), "is called create"),
}
# Calls named by the documents, whatever the rules say.
FIXED = {
    "janus_scheduler_create", "janus_scheduler_shutdown", "janus_scheduler_spawn",
    "janus_scheduler_yield", "janus_nursery_create", "janus_nursery_spawn", "janus_nursery_await",
    "janus_nursery_destroy", "janus_budget_get_current", "janus_budget_recharge",
    "janus_budget_recharge_child", "janus_supervisor_poll_exhausted",
}


def preprocessed(root):
    """The headers without comments, one declaration after the other; and their macros."""
    command = [os.environ.get("CC", "cc"), "-std=c11", f"-I{root / 'include'}", "-x", "c"]
    source = "#include <janusrt/janus.h>\n"
    text = subprocess.run(command + ["-E", "-P", "-"], input=source, check=True,
                          capture_output=True, text=True).stdout
    macros = subprocess.run(command + ["-E", "-dM", "-"], input=source, check=True,
                            capture_output=True, text=True).stdout
    return text, set(re.findall(r"^#define (\w+)", macros, re.M))


def enums(text):
    """(name, constants) of each public enum; the name of one without a tag is ""."""
    for match in re.finditer(r"\benum\s*(\w*)\s*\{([^}]*)\}", text):
        constants = re.findall(r"(?:^|,)\s*(\w+)", match.group(2))
        if any(name.startswith("JANUS_") for name in constants):
            yield match.group(1), constants


def structs(text):
    """name -> the first field, of each public struct that the headers show."""
    found = {}
    for match in re.finditer(r"\bstruct\s+(janus_\w+)\s*\{\s*([^;]*);", text):
        found[match.group(1)] = " ".join(match.group(2).split())
    return found


def calls(text):
    """name -> (what it returns, parameters, whether its status must be looked at)."""
    found = {}
    declaration = re.compile(
        r"((?:__attribute__\s*\(\(.*?\)\)\s*|static inline\s+|extern\s+|const\s+)*)"
        r"((?:struct\s+)?\w+[\s*]+)(janus_\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*"
        r"(?:__attribute__\s*\(\(.*?\)\)\s*)*[;{]")
    for match in declaration.finditer(text):
        before, returns, name, parameters = match.groups()
        if returns.split()[0] in ("return", "else", "typedef"):
            continue
        parameters = [" ".join(p.split()) for p in parameters.split(",")]
        found.setdefault(name, (returns.strip(), parameters, "warn_unused_result" in before))
    return found


def check_enums(text):
    prefixes = {}
    for name, constants in enums(text):
        if not name:
            yield f"enum {{ {constants[0]}, ... }}: give it a name, or define one number as a macro"
            continue
        prefix = SHORT_ENUMS[name][0] if name in SHORT_ENUMS else name.upper() + "_"
        for constant in constants:
            if not constant.startswith(prefix):
                yield f"{constant}: a constant of {name} begins with {prefix}"
        prefixes[prefix] = name
    for prefix, name in prefixes.items():
        for other, another in prefixes.items():
            if other != prefix and name not in SHORT_ENUMS and other.startswith(prefix):
                yield f"{other}: the prefix of {another} begins with that of {name}, {prefix}"
    for status in dict(enums(text)).get("janus_status", []):
        for prefix, name in prefixes.items():
            if name != "janus_status" and status.startswith(prefix):
                yield f"{status}: a status begins with the prefix of {name}"
    for name in SHORT_ENUMS:
        if name not in prefixes.values():
            yield f"SHORT_ENUMS: there is no enum {name}"


def check_structs(found, functions, macros):
    filled = {p.split()[0] for _, parameters, _ in functions.values() for p in parameters
              if p.endswith("out") and "*" in p and p.split()}
    for name, first in found.items():
        if not GROWING.match(name):
            continue
        sized = re.fullmatch(r"size_t struct_bytes", first) is not None
        if name in PLAIN:
            if sized:
                yield f"PLAIN: {name} begins with struct_bytes"
            continue
        if not sized:
            yield f"{name}: begins with size_t struct_bytes"
        if name.upper() not in macros:
            yield f"{name}: the macro {name.upper()} sets struct_bytes"
        if name.endswith("_info") and name not in filled:
            yield f"{name}: an info is what a call that ends in _inspect fills"
    for name in PLAIN:
        if name not in found:
            yield f"PLAIN: there is no struct {name}"


def check_snapshots(functions):
    for name, (returns, parameters, _) in functions.items():
        if not re.search(r"_inspect(_current|_in)?$", name):
            if parameters[-1].endswith("out") and re.match(r"janus_\w+_info \*", parameters[-1]):
                yield f"{name}: a call that fills an info ends in _inspect"
            continue
        if returns != "janus_status" or not re.fullmatch(r"janus_\w+_info \*out", parameters[-1]):
            yield f"{name}: returns a janus_status and takes a janus_..._info *out last"


def check_statuses(functions):
    for name, (returns, _, kept) in functions.items():
        if returns != "janus_status" or name.endswith("_"):
            continue
        if not kept and name not in MAY_DROP:
            yield f"{name}: JANUS_NODISCARD, or a reason in MAY_DROP"
        if kept and name in MAY_DROP:
            yield f"MAY_DROP: {name} is JANUS_NODISCARD"
    for name in MAY_DROP:
        if name not in functions:
            yield f"MAY_DROP: there is no call {name}"


def check_verbs(functions, macros, types):
    known = set(functions) | macros
    for name in functions:
        if name in FIXED or name.endswith("_"):
            continue
        words = name.split("_")[1:]
        for verb, (nouns, means) in VERBS.items():
            if words[-1] == verb and "_".join(words[:-1]) not in nouns:
                yield f"{name}: {verb} {means}"
        if "try" in words:
            plain = name.replace("try_", "", 1)
            noun_follows = words[0] == "try" and len(words) > 2 and "janus_" + words[1] in types
            if noun_follows or plain not in known:
                yield f"{name}: try_ stands right before the verb of a call that waits"
        for end in ("_until", "_with", "_in", "_current"):
            if name.endswith(end) and name[:-len(end)] not in known and not is_getter(name) \
                    and name not in CURRENT:
                yield f"{name}: there is no {name[:-len(end)]}"
        if words[-1].startswith("create") and f"janus_{words[0]}_destroy" not in known \
                and not any(re.fullmatch(rf"janus_{words[0]}\w*_(destroy|release)", k)
                            for k in known):
            yield f"{name}: what is created is destroyed or released"
    for name in FIXED:
        if name not in functions:
            yield f"FIXED: the documents want a call {name}"


def check_limits(text, functions):
    """A limit is max_X, as the documents call theirs, in every struct and every call."""
    fields = [(struct, field) for struct, body in re.findall(r"\bstruct (janus_\w+) \{(.*?)\n\}",
                                                             text, re.S)
              for field in re.findall(r"(\w+)(?:\[\w+\])?;", body)]
    parameters = [(call, parameter.split()[-1].lstrip("*"))
                  for call, (_, parameters, _) in functions.items() for parameter in parameters]
    for where, name in fields + parameters:
        if re.search(r"_max(_|$)", name):
            yield f"{where}: {name}: a limit is named max_..."


def is_getter(name):
    """janus_task_current: what the caller runs in."""
    return name in ("janus_task_current", "janus_fiber_current", "janus_scheduler_current")


def faults(root):
    text, macros = preprocessed(root)
    functions = calls(text)
    yield from check_enums(text)
    yield from check_structs(structs(text), functions, macros)
    yield from check_snapshots(functions)
    yield from check_statuses(functions)
    yield from check_verbs(functions, macros, structs(text))
    yield from check_limits(text, functions)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = list(faults(root))
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
