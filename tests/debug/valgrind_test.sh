#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fibers under Valgrind's memcheck: no errors where there are none, errors where there are some, and
# a stack overflow is contained as it is without Valgrind.
#   valgrind_test.sh PROGRAM STRIP
#
# It runs a copy without debug information: Valgrind gives up on some compilers' DWARF 5.
set -eu

program=$1 strip=$2
tests=0

skip() {
    echo "ok 1 - debug/valgrind_test # SKIP $*"
    exit 77
}

command -v valgrind >/dev/null || skip "no valgrind here"
valgrind -q true >/dev/null 2>&1 || skip "this valgrind cannot run programs"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$strip" --strip-debug -o "$work/fibers" "$program"

# check SENTENCE STATUS PATTERN ARGUMENT...: the program's exit status, and all its output matches.
# Lines that begin with -- are about system calls that this Valgrind does not know.
check() {
    local sentence=$1 expected=$2 pattern=$3 status=0
    shift 3
    tests=$((tests + 1))
    valgrind -q --error-exitcode=9 "$work/fibers" "$@" >"$work/log" 2>&1 || status=$?
    grep -v '^--' "$work/log" >"$work/lines" || true
    if [ $status -eq "$expected" ] && ! grep -qEv "$pattern" "$work/lines"; then
        echo "ok $tests - $sentence"
    else
        echo "not ok $tests - $sentence"
        echo "# status $status, want $expected; lines that do not match $pattern:"
        grep -Ev "$pattern" "$work/lines" | sed 's/^/# /' || true
        exit 1
    fi
}

echo 1..4
check "fibers make no errors and no \"client switching stacks?\"" 0 '^$' everything
check "a value that a fiber never wrote is seen" 9 '^==' unwritten
check "a read beyond a fiber's heap block is seen" 9 '^==' beyond
check "a stack overflow is contained" 0 '^contained by ' overflow
