#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a test program in the deterministic engine, with the seeds that every build tries: three, and
# those of seeds.txt.
#   fixed.sh FOLDER PROGRAM
# FOLDER is a build's tests/. Exit: 0 all passed, 1 the program failed, 77 everything was skipped.
folder=$1 program=$2
result=77
for seed in 1 2 3 $(sed -n "s|^$program  *\([0-9]*\).*|\1|p" "${0%/*}/seeds.txt"); do
    echo "# JANUSRT_SEED=$seed $folder/$program" # if it hangs, this line says what
    output=$(JANUSRT_SEED=$seed "$folder/$program" 2>&1 </dev/null)
    case $? in
    0) result=0 ;;
    77) ;;
    *)
        printf '%s\n' "$output"
        exit 1
        ;;
    esac
done
exit $result
