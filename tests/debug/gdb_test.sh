#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a gdb script on a program, which an emulator may run.
#   gdb_test.sh GDB SCRIPT PROGRAM [EMULATOR argument...]
set -eu

gdb=$1 script=$2 program=$3
shift 3

skip() {
    echo "ok 1 - debug/$(basename "$script" .py) # SKIP $*"
    exit 77
}

[ -x "$program" ] || { echo "no $program"; exit 1; }
command -v "$gdb" >/dev/null || skip "no $gdb here"
"$gdb" -nx -batch -ex 'python print("py" + "thon")' 2>/dev/null | grep -q '^python$' ||
    skip "this $gdb has no Python"

# The script ends gdb with its result; if it comes to the last command, it broke off.
debug=("$gdb" -nx -q -batch -iex 'set debuginfod enabled off' -x "$script" -ex 'quit 3' "$program")

if [ $# -gt 0 ]; then
    command -v "$1" >/dev/null || skip "no $1 here"
    export JANUS_TEST_EMULATOR="$*"
else
    "$gdb" -nx -batch -ex starti -ex kill "$program" 2>&1 | grep -q 'Program stopped' ||
        skip "$gdb may not run programs here"
fi
export PYTHONDONTWRITEBYTECODE=1 # the source tree stays as it is
exec "${debug[@]}"
