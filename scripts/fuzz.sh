#!/bin/bash
# Coverage-guided fuzzing of everything that reads what others wrote, on the stable toolchain.
#   scripts/fuzz.sh 20m [TARGET...]   all targets (or these) in 20 minutes, one on each CPU at a
#                                     time; inputs that reach new code are kept in fuzz/found, for
#                                     the next time
#   scripts/fuzz.sh short             each target on the kept corpus and a second of new inputs
# A target is a file of fuzz/src/bin, its kept corpus a directory of fuzz/corpus, with a dictionary
# beside it where that helps. An input that ends in a panic, in too much memory (fuzz/src/lib.rs)
# or after a minute is kept in fuzz/artifacts; the exit status tells.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
time=$1
shift
case "$time" in
    short) seconds= ;;
    *[0-9]) seconds=$time ;;
    *[0-9]s) seconds=${time%s} ;;
    *[0-9]m) seconds=$((${time%m} * 60)) ;;
    *[0-9]h) seconds=$((${time%h} * 3600)) ;;
    *) usage ;;
esac
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(basename -s .rs fuzz/src/bin/*.rs)
at_once=$(nproc)
[ "$at_once" -le ${#targets[@]} ] || at_once=${#targets[@]}
each=${seconds:+$((seconds * at_once / ${#targets[@]}))}
[ "${each:-1}" -ge 1 ] || { echo "fuzz: less than a second for each target" >&2; exit 2; }

# With a target named, build scripts and macros are built without these flags.
host=$(scripts/cargo.sh -vV | sed -n 's/^host: //p')
llvm() { printf ' -Cllvm-args=-sanitizer-coverage-%s' "$@"; }
profile=fuzz
[ -n "$seconds" ] || profile=dev
RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module$(
    llvm level=4 inline-8bit-counters pc-table trace-compares)" \
    scripts/cargo.sh build --manifest-path fuzz/Cargo.toml --locked --bins \
    --target "$host" --target-dir target --profile "$profile"
binaries=target/$host/${profile/dev/debug}

# One target; prints its row, and what a failure is.
fuzz() {
    local target=$1 log kept command options found input crashes=0
    log=$(mktemp)
    kept=fuzz/corpus/$target
    artifacts=fuzz/artifacts/$target
    mkdir -p "$artifacts"
    command=("$binaries/$target" -timeout=60 -rss_limit_mb=2048 -max_len=16384)
    [ ! -f "fuzz/dictionaries/$target" ] || command+=("-dict=fuzz/dictionaries/$target")
    options=(-print_final_stats=1 "-artifact_prefix=$artifacts/" "-max_total_time=${each:-1}")
    found=fuzz/found/$target
    [ -n "$each" ] || { found=$(mktemp -d); options+=(-seed=1); }
    mkdir -p "$found"
    "${command[@]}" "${options[@]}" "$found" "$kept" >"$log" 2>&1 || crashes=1
    [ -n "$each" ] || rm -rf "$found"
    stat() { sed -n "s/^stat::$1: *//p" "$log"; }
    # The last of "#123 DONE cov: 45 ft: 67 corp: 8/90b ..." that has this figure.
    figure() { sed -n "s/^#.*[ \t]$1: *\([0-9]*\).*/\1/p" "$log" | tail -n1; }
    printf '%-20s %12s %10s %9s %7s %8s\n' "$target" "$(stat number_of_executed_units)" \
        "$(stat average_exec_per_sec)" "$(figure cov)" "$(figure corp)" "$crashes"
    if [ "$crashes" -gt 0 ]; then
        grep -v -e '^#' -e '^INFO' "$log" | head -n 60
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n1)
        echo "fuzz: $target failed; again: ${command[*]} ${input:-$kept}"
    fi
    rm -f "$log"
    return $crashes
}

failed=0
printf '%-20s %12s %10s %9s %7s %8s\n' target executions 'per second' coverage corpus crashes
running=0
for target in "${targets[@]}"; do
    [ "$running" -lt "$at_once" ] || { wait -n || failed=1; running=$((running - 1)); }
    fuzz "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
