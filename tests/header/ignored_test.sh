#!/bin/sh
# SPDX-License-Identifier: MIT
# ignored_test.sh SOURCE INCLUDE CC CXX: a caller that drops the status of a spawn is warned, in C
# and C++; one that says JANUS_IGNORE is not.
set -u
source=$1 include=$2 failed=0
shift 2
echo "1..$(($# * 4))"
test=0
for compiler; do
    case $compiler in
    *++*) language="-x c++ -std=c++17" ;;
    *) language="-x c -std=c11" ;;
    esac
    for call in 0 1 2 3; do
        test=$((test + 1))
        # shellcheck disable=SC2086 # several words
        said=$($compiler $language -Werror=unused-result -DIGNORED=$call -I"$include" \
            -c "$source" -o /dev/null 2>&1)
        warned=$(printf '%s' "$said" | grep -c unused-result)
        if [ "$call" -eq 0 ]; then
            sentence="a status that is ignored on purpose is not warned of ($compiler)"
            [ "$warned" -eq 0 ] && [ -z "$said" ]
        else
            sentence="call $call warns when its status is dropped ($compiler)"
            [ "$warned" -gt 0 ]
        fi
        if [ $? -eq 0 ]; then
            echo "ok $test - $sentence"
        else
            echo "not ok $test - $sentence"
            echo "$said"
            failed=1
        fi
    done
done
exit $failed
