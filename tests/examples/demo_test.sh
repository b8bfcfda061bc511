#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the demo for two seconds without a terminal. It must exit with 0 and draw nothing. For every
# attacker it must name the task, the line that started it and the limit that stopped it.
#   demo_test.sh COMMAND...
#
# A busy machine may not come to every attacker in two seconds. So the demo may run twice more, each
# time for longer, and one good run is enough.
set -u
LC_ALL=C
export LC_ALL

complain() {
    echo "not ok: $*"
    failed=yes
}

# expect ATTACKER PART...: the attacker was stopped, and its sentence contains every part.
expect() {
    line=$(echo "$out" | grep -A1 "^  $1: stopped [1-9][0-9]* times\$" | tail -1)
    [[ -n $line ]] || complain "$1 was not stopped"
    for part in "\"$1\" (examples/demo.c:" "town > " "${@:2}"; do
        [[ $line == *"$part"* ]] || complain "what stopped $1 does not say: $part"
    done
}

# run SECONDS COMMAND...
run() {
    local seconds=$1
    shift
    out=$("$@" "$seconds" </dev/null 2>&1)
    code=$?
    failed=no
    [[ $code == 0 ]] || complain "it ended with $code"
    [[ $out != *$'\033'* ]] || complain "it draws where no terminal is"
    echo "$out" |
        grep -Eq "^  clock: [1-9][0-9]* of $((10 * seconds)) ticks, at worst [0-9.]+ ms late\$" ||
        complain "no word about the clock"
    echo "$out" | grep -Eq "^  crew: [1-9][0-9]* of $((400 * seconds)) jobs, [0-9]+ late\$" ||
        complain "no word about the crew"
    expect 'fork bomb' spawn_count '15 of 15 given to children or used' JANUS_SPAWN_BUDGET
    expect 'allocation bomb' memory JANUS_BUDGET_EXHAUSTED
    expect 'channel flood' channel_ops '20000 of 20000 used' JANUS_BUDGET_EXHAUSTED
    expect 'endless loop' ops '3000000 of 3000000 used' JANUS_BUDGET_EXHAUSTED
    expect 'trespasser' JANUS_CAP_FOREIGN
    echo "$out" | grep -q '^Every attacker was stopped. Every neighbour did its work\.$' ||
        complain "no good end"
    [[ $failed == no ]] || echo "$out"
}

for seconds in 2 8 32; do
    run $seconds "$@"
    [[ $failed == no ]] && echo "ok" && exit 0
done
exit 1
