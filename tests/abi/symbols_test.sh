#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a library shows to a linker is what its list says, and nothing else. The list of libjanusrt
# is exported-symbols.txt, and that of libjanusrt-http is exported-symbols-http.txt, and so on.
#   symbols_test.sh LIBRARY.SO SOVERSION [LIBRARY.A]
#   symbols_test.sh --write LIBRARY.SO...      rewrites the lists
# NM and READELF name the tools when the libraries are for another machine.
set -eu
LC_ALL=C
export LC_ALL

here=$(dirname "$0")
nm=${NM:-nm} readelf=${READELF:-readelf}
failed=no

exported() { # names without their version; type A is the version itself
    "$nm" -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

complain() {
    echo "$*"
    failed=yes
}

name_of() { # libjanusrt-http.so.0.1 is libjanusrt-http
    local file=${1##*/}
    echo "${file%%.*}"
}

list_of() {
    local name
    name=$(name_of "$1")
    echo "$here/exported-symbols${name#libjanusrt}.txt"
}

if [ "$1" = --write ]; then
    shift
    for shared; do
        names=$(exported "$shared")
        printf '# SPDX-License-Identifier: MIT\n%s\n' "$names" >"$(list_of "$shared")"
    done
    exit 0
fi

shared=$1 soversion=$2 static=${3-}
expected=$(list_of "$shared")

if ! diff -u --label expected --label exported \
    <(grep -v '^#' "$expected") <(exported "$shared"); then
    complain "The exported symbols changed. If that is meant: make symbols, and commit the list."
fi

soname=$("$readelf" -dW "$shared" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$soname" = "$(name_of "$shared").so.$soversion" ] || complain "SONAME is \"$soname\""

"$readelf" -lW "$shared" | grep GNU_STACK | grep -qv 'RWE' ||
    complain "$shared asks for an executable stack"

# Tasks give way by themselves; no timer of the system interrupts them.
timers=$("$nm" -D --undefined-only "$shared" | awk '{ sub(/@.*/, "", $2); print $2 }' |
    grep -Ex 'u?alarm|[gs]etitimer|timer_[a-z]+|timerfd_[a-z]+' || true)
[ -z "$timers" ] || complain "$shared uses timers of the system:" $timers

if [ -n "$static" ]; then
    strangers=$("$nm" -g --defined-only "$static" |
        awk 'NF == 3 && $3 !~ /^(janus|jrt)_/ { print $3 }')
    [ -z "$strangers" ] || complain "$static defines foreign names:" $strangers

    # An object without the note, or with a note marked X, would get an executable stack.
    bad=$("$readelf" -SW "$static" | awk '
        function close_object() { if (object != "" && !good) print object }
        /^File:/ { close_object(); object = $2; good = 0 }
        / \.note\.GNU-stack / { good = !/ X / }
        END { close_object() }')
    [ -z "$bad" ] || complain "these objects ask for an executable stack:" $bad
fi

[ $failed = no ]
