#!/bin/sh
# Records what Linux does with spinning threads in a guest of the lab, and writes the report
# that puts the simulated machine's scheduler beside it, both to crates/sim/sim-fast/baseline.
set -eu
cd "$(dirname "$0")/.."
folder=crates/sim/sim-fast/baseline
guest=x86-watched

scripts/fetch-lab.sh x86_64
said=$(mktemp)
trap 'rm -f "$said"' EXIT
scripts/cargo.sh test -p symbiont-cli --no-default-features --profile guest --locked \
    --test lab -- --include-ignored "$guest::" >"$said" 2>&1 || { cat "$said" >&2; exit 1; }
grep '^lab: ' "$said"
log=$(sed -n "s/^lab: $guest: the guest's log is in //p" "$said")
record=$(sed -n 's/^.*@lab say record //p' "$log")
[ -n "$record" ] || { echo "os-baseline: nothing was recorded: see $log" >&2; exit 1; }
mkdir -p "$folder"
printf '%s\n' "$record" >"$folder/linux.json"
UPDATE_GOLDEN=1 scripts/cargo.sh test -q -p symbiont-sim-fast --locked --lib against_linux
echo "os-baseline: $folder/README.md"
