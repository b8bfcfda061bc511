#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A library shows to a linker what its list says, and nothing else.
#   library_test.sh LIBRARY.SO LIST
set -eu
LC_ALL=C
export LC_ALL

if ! diff -u --label expected --label exported <(grep -v '^#' "$2") \
    <(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u); then
    echo "The exported symbols changed. If that is meant, change $2."
    exit 1
fi
if readelf -lW "$1" | grep GNU_STACK | grep -q RWE; then
    echo "$1 asks for an executable stack"
    exit 1
fi
