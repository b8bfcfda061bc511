#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks a Spin model in every way its head asks for:  spin_test.sh MODEL.pml CC
#
#    *   run: ok    -DFLAGS   no order of steps breaks an assertion
#    *   run: error -DFLAGS   some order does: the model notices that a part is missing
#    *   long: ...            the same, minutes in all; only with JANUSRT_MODELS=long
set -u
model=$(realpath "$1") cc=$2
name=$(basename "$model" .pml)
! command -v clang-19 >/dev/null || cc=clang-19 # most of the time is compiling, and gcc takes twice

if ! command -v spin >/dev/null; then
    echo "1..1"
    echo "ok 1 - the model $name holds # SKIP spin is not installed"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
number=0 failed=0

# verdict FLAGS...: ok or error as the search found, or why it found neither.
verdict() {
    spin -a "$@" "$model" >spin.log 2>&1 || { cat spin.log; return; }
    "$cc" "$optimise" -w -DSAFETY -DCOLLAPSE -o pan pan.c >cc.log 2>&1 || { cat cc.log; return; }
    ./pan -m100000 -w22 >pan.log 2>&1
    if grep -qE 'max search depth too small|out of memory|VECTORSZ' pan.log; then
        echo "incomplete: $(grep -E 'max search|out of|VECTORSZ' pan.log | head -n 1)"
    elif grep -q 'errors: 0$' pan.log; then
        echo ok
    elif grep -q 'assertion violated' pan.log; then
        echo error
    else
        head -n 5 pan.log
    fi
}

flag='-D[A-Za-z0-9_=]+'
lines=$(sed -nE "s/^ \*   (run|long): +(ok|error) +($flag( $flag)*).*/\1 \2 \3/p" "$model")
[ "${JANUSRT_MODELS-}" = long ] || lines=$(grep '^run' <<<"$lines")
echo "1..$(wc -l <<<"$lines")"
while read -r kind expected flags; do
    number=$((number + 1))
    optimise=-O0
    [ "$kind" = run ] || optimise=-O2
    # shellcheck disable=SC2086
    found=$(verdict $flags)
    if [ "$expected" = ok ]; then sentence="$name holds: $flags"; else
        sentence="$name notices what is missing: $flags"; fi
    if [ "$found" = "$expected" ]; then
        echo "ok $number - $sentence"
        sed -n 's/ *\([0-9.e+]*\) states, stored.*/# \1 states/p' pan.log
    else
        failed=$((failed + 1))
        echo "not ok $number - $sentence"
        sed 's/^/#   /' <<<"$found"
        # shellcheck disable=SC2086
        [ "$expected" = error ] || spin -k ./*.trail -p $flags "$model" 2>&1 | tail -n 60 |
            sed 's/^/#   /'
    fi
done <<<"$lines"
[ $number -gt 0 ] && [ $failed -eq 0 ]
