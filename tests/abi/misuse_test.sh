#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wrong uses of the headers are told by the compiler, right ones pass without a warning.
#   misuse_test.sh INCLUDE CC [CXX]
set -u
include=$1 cc=$2 cxx=${3-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=no

# compile LANGUAGE FILE: what the compiler says
compile() {
    local flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I"$include")
    if [ "$1" = c ]; then
        "$cc" -std=c11 "${flags[@]}" -x c "$2" 2>&1
    else
        "$cxx" -std=c++17 "${flags[@]}" -x c++ "$2" 2>&1
    fi
}

# expect LANGUAGE PATTERN SENTENCE BODY: an empty pattern means that it compiles
expect() {
    local said
    printf '#include <janusrt/janus.h>\nint64_t child(void *a);\nint64_t f(void *a);\n' >"$dir/t.c"
    printf 'int64_t f(void *a)\n{\n%s\n}\n' "$4" >>"$dir/t.c"
    said=$(compile "$1" "$dir/t.c")
    local code=$?
    if [ -z "$2" ] && [ $code -eq 0 ]; then return; fi
    if [ -n "$2" ] && [ $code -ne 0 ] && grep -qE "$2" <<<"$said"; then return; fi
    echo "not so in $1: $3"
    echo "$said" | head -5
    failed=yes
}

for language in c c++; do
    if [ $language = c++ ] && ! command -v "${cxx:-none}" >/dev/null; then
        echo "no C++ compiler: C++ is not tested"
        continue
    fi
    expect $language '' 'a block with a status that is read compiles' '
        janus_status s;
        JANUS_NURSERY(n, s) { if (janus_spawn(n, child, a) != JANUS_OK) break; }
        return s;'
    expect $language '' 'a block with options compiles' '
        janus_status s;
        JANUS_NURSERY(n, s, .max_children = 4, .name = "few") {
            if (janus_spawn(n, child, a) != JANUS_OK) return 1;
        }
        return s;'
    expect $language 'unused-but-set' 'a block whose status is never read warns' '
        janus_status s;
        JANUS_NURSERY(n, s) { if (janus_spawn(n, child, a) != JANUS_OK) break; }
        return 0;'
    expect $language 'error' 'a block without a status does not compile' '
        JANUS_NURSERY(n) { if (janus_spawn(n, child, a) != JANUS_OK) break; }
        return 0;'
    expect $language 'error' 'a block with an unknown option does not compile' '
        janus_status s;
        JANUS_NURSERY(n, s, .colour = 3) { if (janus_spawn(n, child, a) != JANUS_OK) break; }
        return s;'
done
[ $failed = no ]
