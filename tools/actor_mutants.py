#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds a bug into src/actor, builds the tests of actors, and says which of them notice.

    tools/actor_mutants.py [NAME]    from the root of a clean tree, with the build gcc-release

A mutant is a text in a file and what replaces it. The text must occur exactly once. The script
prints a row of docs/gallery.md for each mutant, and restores the file. The number of schedules is
that of the first scene that fails: its seed, because each scene begins with seed 1.
"""

import pathlib
import re
import subprocess
import sys

BUILD = "build/gcc-release"
SECONDS = 60  # for one program

MUTANTS = [
    ("new mailbox at a restart", "decide.c", "if (place->spec->child.drops_mail) jrt_mail_drop",
     "jrt_mail_drop"),
    ("DOWN before the name is free", "step.c",
     "    jrt_place_unname(place);\n    jrt_notices_end(place);",
     "    jrt_watches_collect(place);\n    jrt_watches_tell(place, &end);\n"
     "    jrt_place_unname(place);\n    jrt_notices_end(place);"),
    ("a watch after the end is missed", "notice.c",
     "if (target == NULL) go_off(watch, &never);", ""),
    ("the right to answer is used again", "question.c",
     "if (question->key != key || key == 0) return false;",
     "if (question->key == 0 || key == 0) return false;"),
    ("an end that was ordered is decided about", "step.c",
     "case JANUS_ACTOR_STATE_RUNNING: jrt_place_after_end(place); break;",
     "case JANUS_ACTOR_STATE_STOPPING:\n"
     "    case JANUS_ACTOR_STATE_RUNNING: jrt_place_after_end(place); break;"),
    ("a stop during the delay is lost", "manage.c",
     "            if (status == JANUS_OK) {\n                (void)jrt_place_set_time(place, 0);",
     "            if (status > JANUS_OK) {\n                (void)jrt_place_set_time(place, 0);"),
    ("two restarts for two that fail at once", "step.c",
     "if (place->state != JANUS_ACTOR_STATE_STOPPING && place->state != JANUS_ACTOR_STATE_STUCK)\n"
     "        move(place, JANUS_ACTOR_STATE_STOPPING);",
     "if (place->state != JANUS_ACTOR_STATE_STOPPING &&\n"
     "        place->state != JANUS_ACTOR_STATE_STUCK && place->task != NULL)\n"
     "        move(place, JANUS_ACTOR_STATE_STOPPING);"),
    ("a sender is not woken at the end", "step.c",
     "    if (!place->open) jrt_senders_serve(place, true);\n", ""),
    ("a block is adopted twice", "run.c", "head.block = janus_detach(block);",
     "head.block = block;"),
    ("an allowance is paid twice", "exhaustion.c",
     "        rare->refilled_at = now;\n", ""),
    ("IGNORE at a restart leaves the place", "decide.c",
     "    if (ignored) {\n        jrt_place_settle(place);\n        return;",
     "    if (ignored) {\n        return;"),
    ("room that was reserved is lost", "mail.c",
     "        wait->sender.reserved = false;\n        jrt_senders_serve(place, false);",
     "        wait->sender.reserved = false;"),
]


def programs():
    names = sorted(path.stem for path in pathlib.Path("tests/actor").glob("*_test.c"))
    return [name for name in names if not re.search("scale|count", name)]  # which take minutes


def build():
    targets = [f"actor.{name}" for name in programs()]
    made = subprocess.run(["nice", "ninja", "-C", BUILD, "-j2", *targets], capture_output=True,
                          text=True)
    return "" if made.returncode == 0 else made.stdout[-600:]


def run(name):
    """What a program said: NULL if it passed, else the sentence and the number of schedules."""
    try:
        ran = subprocess.run(["nice", f"{BUILD}/tests/actor/{name}"], capture_output=True,
                             text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "does not end", None
    if ran.returncode == 0:
        return None
    seed = re.search(r"JANUSRT_REPLAY='[^']*?/s(\d+)", ran.stdout)
    sentence = re.search(r"not ok \d+ - (.*)", ran.stdout)
    return (sentence[1] if sentence else "ends", int(seed[1]) if seed else None)


def first_of(names):
    """The first program that notices, its sentence and the number of schedules; None: none does."""
    for name in names:
        what = run(name)
        if what is not None:
            return name, *what
    return None


def try_one(name, file, old, new):
    path = pathlib.Path("src/actor", file)
    text = path.read_text()
    if text.count(old) != 1:
        return f"| {name} | the text is not in {file} once | |"
    path.write_text(text.replace(old, new))
    try:
        wrong = build()
        found = None if wrong else first_of(programs())
    finally:
        path.write_text(text)
    if wrong:
        return f"| {name} | does not compile: {wrong} | |"
    if found is None:
        return f"| {name} | nothing | |"
    program, sentence, schedules = found
    return f"| {name} | `actor/{program}`: {sentence} | {schedules or ''} |"


def main():
    print("| seeded in the library | found by | schedules |")
    print("|---|---|---:|")
    for mutant in MUTANTS:
        if len(sys.argv) < 2 or sys.argv[1] in mutant[0]:
            print(try_one(*mutant), flush=True)
    build()


main()
