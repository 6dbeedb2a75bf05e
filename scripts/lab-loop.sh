#!/bin/sh
# Plays what make test plays of the lab again and again, and keeps what was said: is there a
# scenario that fails now and then?
#   scripts/lab-loop.sh [TIMES [FOLDER]]    by default 20, target/lab-loop/ with the time
# Prints a line for each time, which is kept as FOLDER/summary beside the whole output and the
# guest's log. Ends with 1 if a scenario failed, or if none was played.
set -eu
cd "$(dirname "$0")/.."
times=${1:-20}
folder=${2:-target/lab-loop/$(date +%Y%m%dT%H%M%S)}

play() {
    scripts/cargo.sh test -p symbiont-cli --all-features --locked --test lab "$@"
}

scripts/fetch-lab.sh x86_64
play --no-run
mkdir -p "$folder"
failed=0
run=0
while [ "$run" -lt "$times" ]; do
    run=$((run + 1))
    name=$folder/$(printf %02d "$run")
    begin=$(date +%s)
    how=well
    play >"$name.log" 2>&1 || how=badly
    took=$(($(date +%s) - begin))
    # "test result: ok. 15 passed; 0 failed; …"
    result=$(sed -n 's/^test result: [A-Za-z]*\. //p' "$name.log" | cut -d';' -f1,2)
    case $result in
    '' | '0 passed'*) how=badly ;;
    esac
    guest=$(sed -n "s/^lab: .*: the guest's log is in //p" "$name.log")
    [ ! -r "$guest" ] || cp "$guest" "$name-guest.log"
    again=$(grep -c '^lab: .*: attempt [0-9]' "$name.log") || :
    [ "$how" = well ] || failed=$((failed + 1))
    echo "$run of $times: $how: ${result:-nothing played}; $took s; booted again $again times;" \
        "load $(cut -d' ' -f1 /proc/loadavg)" | tee -a "$folder/summary"
done
echo "$failed of $times failed; kept in $folder" | tee -a "$folder/summary"
[ "$failed" -eq 0 ]
