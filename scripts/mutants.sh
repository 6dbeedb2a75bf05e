#!/bin/sh
# Changes the code in small ways, one at a time, and runs the tests of its room: each change that
# no test notices ("missed") is a hole in the tests. Needs cargo-mutants
# (`cargo install cargo-mutants --locked`).
#   scripts/mutants.sh ROOM [PATH…] [-- OPTIONS of cargo mutants]
# ROOM is a folder of crates/. PATH, a file or folder within its src, narrows what is changed;
# the room of the real machine is tested by what watches and acts, not by what measures.
#   scripts/mutants.sh planner
#   scripts/mutants.sh linux actuate observe/tree.rs -- --shard 1/8
# Prints the share of changes that were caught, and each that was not.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n 's/^# \{0,1\}//p' "$0" | sed -n '1,10p' >&2
    exit 2
}

room=${1:-}
folder=$(ls -d crates/*/"$room" "crates/$room" 2>/dev/null | head -n 1)
[ -n "$room" ] && [ -d "$folder/src" ] || usage
shift
cargo mutants --version >/dev/null 2>&1 || {
    echo "mutants: cargo-mutants is missing; install it: cargo install cargo-mutants --locked" >&2
    exit 1
}

paths=
only=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    *.rs) paths="$paths -f $folder/src/$1" ;;
    *) paths="$paths -f $folder/src/$1/**" ;;
    esac
    shift
done
[ "${1:-}" = -- ] && shift
# The other tests of this room measure, and take minutes.
[ "$room" != linux ] || only="--lib --test actuate --test observe --test release"

out=target/mutants/$room
mkdir -p "$out"
set -f # the paths are patterns for cargo mutants, not for the shell
# shellcheck disable=SC2086 # the lists are meant to be split
PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1} cargo mutants -p "symbiont-$room" $paths \
    --exclude "crates/*/*/src/worlds/**" --output "$out" --no-shuffle --colors never "$@" -- $only || result=$?
# 2: some were missed; 3: some ran out of time, which counts as noticed.
case ${result:-0} in 0 | 2 | 3) ;; *) exit "$result" ;; esac

lines() { wc -l <"$out/mutants.out/$1.txt"; }
caught=$(($(lines caught) + $(lines timeout)))
missed=$(lines missed)
all=$((caught + missed))
[ "$all" -gt 0 ] || { echo "mutants: nothing to change there" >&2; exit 1; }
echo "$room: $caught of $all changes caught ($((100 * caught / all)) %)"
sed 's/^/  missed: /' "$out/mutants.out/missed.txt"
