#!/bin/sh
# How fast `symbiont profile` is: gzip of 20 MB, beside the native run and
# valgrind's tools, in million instructions of the program per second.
#   scripts/profile-speed.sh [ROUNDS]
# Build first (make build). Needs qemu-user; valgrind is used if it is there.
set -eu
rounds=${1:-3}
cd "$(dirname "$0")/.."
symbiont=$PWD/target/release/symbiont
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq 1 4000000 | head -c 20000000 >input

now() { date +%s%N; }
# best COMMAND...: the shortest of all rounds, in milliseconds
best() {
    shortest=
    for _ in $(seq "$rounds"); do
        start=$(now)
        "$@" >/dev/null 2>"$work/log"
        took=$((($(now) - start) / 1000000))
        if [ -z "$shortest" ] || [ "$took" -lt "$shortest" ]; then shortest=$took; fi
    done
    echo "$shortest"
}
line() { # line NAME MILLISECONDS INSTRUCTIONS
    awk -v name="$1" -v ms="$2" -v n="$3" \
        'BEGIN { printf "%-44s %9.2f s %10.1f million/s\n", name, ms / 1000, n / ms / 1000 }'
}

"$symbiont" profile --json --stdout /dev/null -o p.profile -- gzip -c input >summary
count=$(sed -n '/^  "instructions"/s/[^0-9]//gp' summary)
echo "gzip -c of 20 MB: $count instructions; the best of $rounds rounds"
line "native" "$(best gzip -c input)" "$count"
line "symbiont profile" \
    "$(best "$symbiont" profile --stdout /dev/null -o p.profile -- gzip -c input)" "$count"
if command -v valgrind >/dev/null; then
    line "cachegrind with branches (no phases, no traces)" \
        "$(best valgrind --tool=cachegrind --branch-sim=yes --cachegrind-out-file=cachegrind.out gzip -c input)" "$count"
    # A hundredth of the input: it would take an hour.
    head -c 200000 input >small
    "$symbiont" profile --json --stdout /dev/null -o s.profile -- gzip -c small >summary
    line "lackey --trace-mem (of 200 kB)" \
        "$(best valgrind --tool=lackey --trace-mem=yes gzip -c small)" \
        "$(sed -n '/^  "instructions"/s/[^0-9]//gp' summary)"
fi
