#!/bin/bash
# All tests: style and lints, what others wrote about events, inputs that readers have to bear, and the tests of the
# workspace, those of whole programs beside those of functions. The guest of the lab boots first and plays beside all of
# them: it is an emulator that keeps one CPU busy for minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# A shell's `&` and nohup have signals ignored, which stay so in what is started; some tests send them.
workspace=(env --default-signal=HUP,INT,QUIT,TERM scripts/cargo.sh test --workspace --all-features --locked)

"${workspace[@]}" --test lab --no-run
logs=$(mktemp -d)
guest= programs=
trap 'for job in $guest $programs; do kill -- "-$job" 2>/dev/null || :; done; rm -rf "$logs"' EXIT
# Each in a group of its own, so that what it started ends with it.
set -m
"${workspace[@]}" --test lab </dev/null >"$logs/lab" 2>&1 &
guest=$!
set +m
scripts/lint.sh
scripts/fetch-oracles.sh
scripts/fuzz.sh short
"${workspace[@]}" --no-run
failed=0
# Tests of whole programs wait for these half of their time. Names of the lab's scenarios begin with their guest's.
set -m
"${workspace[@]}" --no-fail-fast --test '*' -- --skip x86- </dev/null >"$logs/programs" 2>&1 &
programs=$!
set +m
"${workspace[@]}" --no-fail-fast --lib --bins || failed=1
"${workspace[@]}" --no-fail-fast --doc || failed=1
wait "$programs" || failed=1
programs=
cat "$logs/programs"
wait "$guest" || failed=1
guest=
cat "$logs/lab"
exit $failed
