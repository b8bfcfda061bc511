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
    ("a watch after the end is missed", "watch.c",
     "if (target == NULL) go_off(watch, &never);", ""),
    ("the right to answer is used again", "question.c",
     "if (jrt_load_relaxed(&question->key) != key || key == 0) return false;",
     "if (jrt_load_relaxed(&question->key) == 0 || key == 0) return false;"),
    ("an end that was ordered is decided about", "step.c",
     "case JANUS_ACTOR_STATE_RUNNING: jrt_place_after_end(place); break;",
     "case JANUS_ACTOR_STATE_STOPPING:\n"
     "    case JANUS_ACTOR_STATE_RUNNING: jrt_place_after_end(place); break;"),
    ("a stop during the delay is lost", "manage.c",
     "            if (status == JANUS_OK) {\n                (void)jrt_place_set_time(place, 0);",
     "            if (status > JANUS_OK) {\n                (void)jrt_place_set_time(place, 0);"),
    ("two restarts for two that fail at once", "plan.c",
     "if (!again) jrt_place_move(place, JANUS_ACTOR_STATE_STOPPING);",
     "if (!again && place->task != NULL) jrt_place_move(place, JANUS_ACTOR_STATE_STOPPING);"),
    ("a sender is not woken at the end", "step.c",
     "    if (!place->open && place->rare != NULL) jrt_senders_serve(place, true);\n", ""),
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
    ("the mailbox takes one message too many", "mail.c",
     "if (jrt_mail_has_senders(place) || jrt_mail_taken(place) >= jrt_mail_limit(place))\n"
     "        return JANUS_WOULD_WAIT;",
     "if (jrt_mail_has_senders(place) || jrt_mail_taken(place) > jrt_mail_limit(place))\n"
     "        return JANUS_WOULD_WAIT;"),
    ("reserved room is given to another", "ring.h",
     "return jrt_mail_count(place) + aside + place->reserved;",
     "return jrt_mail_count(place) + aside;"),
    ("a full mailbox drops a call", "ring.c", "        if (out->is_call) continue;\n", ""),
    ("a dropped block keeps its bytes", "ring.c",
     "        if (out->block != NULL && place->rare != NULL) "
     "place->rare->block_bytes -= out->key;\n", ""),
    ("room that nobody could fill is lost", "mail.c",
     "        jrt_senders_serve(place, false); /* the room is the next one's, [mail-room] */\n",
     ""),
    ("a sender that was sent away delivers", "mail.c",
     "status = mine && place->open ?", "status = place->open ?"),
    ("blocks that waited are not counted", "mail.c",
     "room_for_block(place, head) : JANUS_CLOSED;", "JANUS_OK : JANUS_CLOSED;"),
    ("a second stop gives new time", "plan.c",
     "        if (at != 0 && (", "        if (at == now + 1 && ("),
    ("a second stop hides a cancel", "plan.c",
     "    if (again && place->cancelled) return;", "    if (false) return;"),
    ("an old decision decides", "step.c",
     "place->nameless = place->asked = false;", "place->nameless = false;"),
    ("answered asks keep their timers", "notice.c",
     "if (rare != NULL && rare->timer_count >= JRT_ACTOR_TIMERS_MAX) jrt_asks_forget(rare);\n",
     "\n"),
    ("a call that dies is a dead letter", "mail.c",
     "        if (found && call) place->returned++;\n        if (found && !call) place->dead++;",
     "        if (found) place->dead++;"),
    ("DOWN only at the final end", "watch.c",
     "struct jrt_actor_watch *watch = rare->watched_then;",
     "struct jrt_actor_watch *watch = end->final ? rare->watched_then : NULL;"),
    ("DOWN never says that it is final", "step.c", "    end.final = !again;\n", ""),
    ("unwatch leaves a DOWN that waits", "watch.c",
     "        if (notice != NULL) (void)jrt_notice_take_out(self, notice);\n",
     "        notice = NULL;\n"),
    ("timers survive a restart", "notice.c",
     "        rare->timers = NULL;\n        rare->in_hand = NULL;\n        rare->timer_count = 0;",
     "        timers = NULL;\n        rare->in_hand = NULL;"),
    ("IDLE survives a restart", "notice.c",
     "        rare->idle_ns = rare->idle_at = rare->refill_at = 0;\n"
     "        rare->continues = false;",
     "        rare->continues = false;"),
    ("CONTINUE survives a restart", "notice.c",
     "        rare->idle_ns = rare->idle_at = rare->refill_at = 0;\n"
     "        rare->continues = false;",
     "        rare->idle_ns = rare->idle_at = rare->refill_at = 0;"),
    ("an alarm that rings twice before its flush", "notice.c", "    if (!rare->due) {\n",
     "    if (true) {\n"),
    ("a suspension survives a restart", "step.c",
     "place->suspended = place->forced = place->dismissed = false;",
     "place->forced = place->dismissed = false;"),
    ("the verdict RESTART holds for ever", "step.c",
     "place->suspended = place->forced = place->dismissed = false;",
     "place->suspended = place->dismissed = false;"),
    ("the verdict CANCEL holds for ever", "step.c",
     "place->suspended = place->forced = place->dismissed = false;",
     "place->suspended = place->forced = false;"),
    ("an actor that drains cannot be stopped harder", "plan.c",
     "bool stricter = place->stops == 0 || (janus_stop_how)(place->stops - 1) == "
     "JANUS_STOP_HOW_DRAIN;", "bool stricter = place->stops == 0;"),
    ("a wish to be described is forgotten", "step.c",
     "    if (owed->describes != NULL)\n        (void)jrt_question_end(owed->describes, owed->key, "
     "JANUS_NO_REPLY, NULL, 0);\n", ""),
    ("what an incarnation spent is forgotten", "step.c",
     "    rare->spent = janus_budget_add(rare->spent, spent);\n", ""),
    ("the name is not released", "step.c",
     "    jrt_place_unname(place);\n    jrt_notices_end(place);", "    jrt_notices_end(place);"),
    ("the delay does not double", "decide.c", "rare->delay_ns * 2;", "rare->delay_ns;"),
    ("the delay never becomes short again", "decide.c",
     "now - rare->failed_at >= supervisor->options.healthy_ns;", "now == 0;"),
    ("the delay counts as healthy", "decide.c", "rare->failed_at = now + delay;",
     "rare->failed_at = now;"),
    ("restarts cost nothing", "decide.c",
     "if (terms == NULL || terms->account == NULL) return true;",
     "if (terms == NULL || price.ops != 0) return true;"),
    ("a restart is paid twice", "decide.c", "paid = !counted || pay_restart(supervisor);",
     "paid = !counted || (pay_restart(supervisor) && pay_restart(supervisor));"),
    ("a restart that nobody paid is counted", "decide.c",
     "if (counted && paid) supervisor->result.restarts++;",
     "if (counted) supervisor->result.restarts++;"),
    ("the period never ends", "decide.c", "return now - oldest >= period;",
     "return now < oldest + period && false;"),
    ("one restart too many in a period", "decide.c",
     "if (supervisor->restarts_count <= max) return true;",
     "if (supervisor->restarts_count <= max + 1) return true;"),
    ("children stop all at once", "plan.c", "(together || supervisor->stopping == 0)) {",
     "(together || supervisor->stopping < 1000)) {"),
    ("children stop in the order of their start", "plan.c",
     "supervisor->stop_how = how;\n    supervisor->cursor = supervisor->last;",
     "supervisor->stop_how = how;\n    supervisor->cursor = supervisor->first;"),
    ("exhaustion without end", "exhaustion.c",
     "return ++rare->short_count <= options->max_exhaustions;",
     "return ++rare->short_count != options->max_exhaustions + UINT32_C(1000000);"),
    ("a budget that nobody decides about waits for ever", "../nursery/exhaust.c",
     "(n->on_heap == JRT_SUPERVISED && policy_of(n) == JANUS_EXHAUSTION_AUTO) ||", ""),
]


def programs():
    names = sorted(path.stem for path in pathlib.Path("tests/actor").glob("*_test.c"))
    return [name for name in names if not re.search("scale|count", name)]  # which take seconds


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
    return f"| {name} | `actor/{program}`, {sentence} | {schedules or ''} |"


def main():
    print("| seeded in the library | found by | schedules |")
    print("|---|---|---:|")
    for mutant in MUTANTS:
        if len(sys.argv) < 2 or sys.argv[1] in mutant[0]:
            print(try_one(*mutant), flush=True)
    build()


if __name__ == "__main__":
    main()
