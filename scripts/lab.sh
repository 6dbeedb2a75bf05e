#!/bin/sh
# Boots the guests of the lab and plays all scenarios. What is missing is fetched while the
# programs for this machine are built. Says how long each part took.
set -eu
cd "$(dirname "$0")/.."
begin=$(date +%s)

after() {
    echo "lab: $1 after $(($(date +%s) - begin)) s"
}

play() {
    scripts/cargo.sh test -p symbiont-cli --no-default-features --profile guest --locked \
        --test lab "$@"
}

scripts/fetch-lab.sh x86_64 aarch64 powerpc64le &
fetch=$!
trap 'kill "$fetch" 2>/dev/null || :' EXIT
play --no-run
after "built for this machine"
wait "$fetch"
trap - EXIT
after "all was there"
status=0
# What is recorded for make os-baseline is no test, what scripts/nudging.sh measures and the many kills of
# scripts/check-scx.sh take long, and scripts/runtimes.py brings programs along.
play -- --include-ignored --skip x86-watched:: --skip x86-timed --skip arm64-timed --skip x86-kills:: --skip x86-runtimes:: ||
    status=$?
after "done"
exit "$status"
