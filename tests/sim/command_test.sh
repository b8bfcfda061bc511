#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command on a program: it finds what is wrong, and what it prints runs that again.
#   command_test.sh JANUSRT PROGRAM
set -u
LC_ALL=C
export LC_ALL
janusrt=$1 program=$2
number=0
failed=no

# expect STATUS TEXT COMMAND...: it ends so, and says that.
expect() {
    local status=$1 text=$2
    shift 2
    out=$("$@" 2>&1)
    local got=$?
    number=$((number + 1))
    if [ $got = "$status" ] && [[ $out == *"$text"* ]]; then
        echo "ok $number - $text"
    else
        echo "not ok $number - $text: $* ended with $got, not $status, and said:"
        echo "${out//$'\n'/$'\n'# }"
        failed=yes
    fi
}

# The replay text that the last command printed.
replay() { sed -n 's/^ *JANUSRT_REPLAY=\([^ ]*\) .*/\1/p' <<<"$out"; }

expect 0 'nothing found' "$janusrt" explore --schedules 100 "$program" -- none
expect 1 'failed: exit: status 3' "$janusrt" explore --schedules=500 "$program" -- race
text=$(replay)
expect 3 ' and ' env JANUSRT_REPLAY="$text" "$program" race
expect 1 ' and ' "$janusrt" replay "$text" "$program" -- race
expect 1 'failed: exit: status 3' "$janusrt" explore --strategy pct "$program" race
expect 1 'seed 7,' "$janusrt" explore --seed 7 --workers 2 "$program" -- race
expect 1 'failed: signal: Segmentation fault' \
    env ASAN_OPTIONS=handle_segv=0 TSAN_OPTIONS=handle_segv=0 \
    "$janusrt" explore --schedules 5000 "$program" -- crash
expect 1 'Segmentation fault' env ASAN_OPTIONS=handle_segv=0 TSAN_OPTIONS=handle_segv=0 \
    "$janusrt" replay "$(replay)" "$program" -- crash
expect 1 'failed: deadlock' "$janusrt" explore --schedules 5000 "$program" -- lock
expect 1 'failed: deadlock' "$janusrt" replay "$(replay)" "$program" -- lock
expect 0 'nothing found' "$janusrt" explore --faults wake,death --every 10 --schedules 50 \
    "$program" -- none
expect 0 'there are no more' "$janusrt" explore --strategy exhaustive --depth 1 --workers 1 \
    "$program" -- none

# Schedulers that the program opens itself.
for how in open create two; do
    expect 0 'nothing found' "$janusrt" explore --schedules 100 "$program" -- none $how
    expect 1 'failed: exit: status 3' "$janusrt" explore --schedules=500 "$program" -- race $how
    text=$(replay)
    expect 3 ' and ' env JANUSRT_REPLAY="$text" "$program" race $how
    expect 1 ' and ' "$janusrt" replay "$text" "$program" -- race $how
    expect 1 'failed: deadlock' "$janusrt" explore --schedules 5000 "$program" -- lock $how
    expect 1 'failed: deadlock' "$janusrt" replay "$(replay)" "$program" -- lock $how
done
expect 0 'nothing found' "$janusrt" explore --faults wake,death --every 10 --schedules 50 \
    "$program" -- none open
expect 0 'there are no more' "$janusrt" explore --strategy exhaustive --depth 1 --workers 1 \
    "$program" -- none open
expect 1 'too many steps' "$janusrt" explore --steps 20 "$program" -- none open
expect 2 'a second thread uses the scheduler' "$janusrt" explore "$program" -- none used
expect 2 'a second thread creates a scheduler' "$janusrt" explore "$program" -- none another
if ! grep -q __tsan_init "$program"; then # which has a thread of its own
    expect 2 'has started threads before' "$janusrt" explore "$program" -- none early
fi

expect 1 'too many steps' "$janusrt" explore --steps 20 "$program" -- none
expect 1 'too many steps' "$janusrt" replay "$(replay)" "$program" -- none
expect 1 'failed: exit: status 3' "$janusrt" explore --stale "$program" -- race
expect 0 '1/w4/a/' echo "$(replay)"

expect 0 'Exit status' "$janusrt" --help
expect 0 'janusrt ' "$janusrt" --version
expect 2 'a command is missing' "$janusrt"
expect 2 'no such command' "$janusrt" conquer
expect 2 'no such option' "$janusrt" explore --sede 7 "$program"
expect 2 "'x' is not a number" "$janusrt" explore --seed x "$program"
expect 2 "'0' is not a number" "$janusrt" explore --schedules 0 "$program"
expect 2 "'2000' is not a number" "$janusrt" explore --workers 2000 "$program"
expect 2 'its value is missing' "$janusrt" explore --seed
expect 2 "'luck' is not a known name" "$janusrt" explore --strategy luck "$program"
expect 2 "'rain' is not a known name" "$janusrt" explore --faults wake,rain "$program"
expect 2 'not a number of minutes' "$janusrt" explore --minutes -1 "$program"
expect 2 'PROGRAM is missing' "$janusrt" explore --seed 7
expect 2 'No such file' "$janusrt" explore /nowhere/at/all
expect 2 'called none of janus_run, janus_scheduler_create_with' \
    "$janusrt" explore "$program" -- nothing
expect 2 'is not understood' "$janusrt" replay 1/w4/zebra "$program" -- none
[[ $out != *'called none of'* ]] || failed=yes
expect 2 'is not understood' env JANUSRT_EXPLORE=seed "$program" none
# The program has its own file in place of the command's pipe. The file stays unchanged.
file=$(mktemp)
expect 0 'nothing found' \
    env JANUSRT_BEGUN_FD=3.1 JANUSRT_EXPLORE=schedules=3 "$program" none 3>"$file"
expect 0 '' test ! -s "$file"
rm -f "$file"

echo "1..$number"
[ $failed = no ]
