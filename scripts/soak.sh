#!/bin/sh
# Manages a program of short-lived threads for a while, and prints once a second
# what the manager holds. Memory and descriptors must not grow.
#
# usage: scripts/soak.sh [SECONDS [THREADS_PER_SECOND [PROFILE]]]
#
# Defaults: 60 5000 release. Exits 1 if, from the third second on, the manager's
# anonymous memory grows by more than 1 MB or the descriptors that it always
# holds by more than 16.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
rate=${2:-5000}
bin=$PWD/target/${3:-release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/symbiont" run --state-dir "$work/state" --policy random --report text -- \
    "$bin/symbiont-synth" churn --rate "$rate" --duration "${seconds}s" &
program=$!

manager=
while [ -z "$manager" ]; do
    sleep 0.1
    kill -0 "$program" || exit 1
    manager=$(sed -n 's/^{"manager":{"process":\([0-9]*\).*/\1/p' "$work/state/lock" 2>/dev/null) || :
done

echo "second descriptors memory_kB"
second=0
while [ -d "/proc/$manager/fd" ]; do
    # The fewest of ten looks: files of threads that live are open now and then.
    least=
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        now=$(ls "/proc/$manager/fd" 2>/dev/null | wc -l)
        [ "$now" -eq 0 ] || [ "${least:-$now}" -lt "$now" ] || least=$now
        sleep 0.1
    done
    memory=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$manager/status" 2>/dev/null) || :
    [ -n "$memory" ] && [ -n "$least" ] || break
    second=$((second + 1))
    echo "$second $least $memory" | tee -a "$work/series"
done
wait "$program"

awk '$1 == 3 { descriptors = $2; memory = $3 }
     $1 > 3 && ($2 > descriptors + 16 || $3 > memory + 1024) { grew = 1 }
     END { if (NR < 4) print "too short to tell"; else print grew ? "it grows" : "it does not grow"
           exit grew || NR < 4 }' "$work/series"
