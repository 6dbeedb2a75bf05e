#!/bin/sh
# Measures in two guests of the lab how much of their time nudged threads spend where they were put, beside held
# ones, under loads with which the kernel's balance agrees and others with which it does not. Prints a table for
# each guest; ends with 1 if a row is worse than the scenario expects. Takes ten minutes for each guest.
#   scripts/nudging.sh [GUEST]    x86-timed (one last-level cache), x86-timed-two-llcs; by default both
set -eu
cd "$(dirname "$0")/.."
scripts/fetch-lab.sh x86_64
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
scripts/cargo.sh test -p symbiont-cli --no-default-features --profile guest --locked \
    --test lab -- --include-ignored --skip ::rivals "${1:-x86-timed}${1:+::}" >"$said" 2>&1 || status=$?
logs=$(sed -n "s/^lab: x86-timed.*: the guest's log is in //p" "$said")
[ -n "$logs" ] || { cat "$said" >&2; exit 1; }
for log in $logs; do
    echo "$log"
    sed -n 's/^.*@lab say |/|/p' "$log"
done
[ "$status" = 0 ] || sed -n '/^failures:/,$p' "$said" >&2
exit "$status"
