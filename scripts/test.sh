#!/bin/bash
# All tests: style and lints, what others wrote about events, inputs that readers have to bear, and the tests of the
# workspace. The guest of the lab boots first and plays beside all of them: it is an emulator that keeps one CPU busy
# for minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# A shell's `&` and nohup have signals ignored, which stay so in what is started; some tests send them.
workspace=(env --default-signal=HUP,INT,QUIT,TERM scripts/cargo.sh test --workspace --all-features --locked)

"${workspace[@]}" --test lab --no-run
lab=$(mktemp)
# In a group of its own, so that the emulator ends with it.
set -m
"${workspace[@]}" --test lab >"$lab" 2>&1 &
guest=$!
set +m
trap 'kill -- "-$guest" 2>/dev/null || :; rm -f "$lab"' EXIT
scripts/lint.sh
scripts/fetch-oracles.sh
scripts/fuzz.sh short
"${workspace[@]}" --no-run
failed=0
# Names of the lab's scenarios begin with their guest's.
"${workspace[@]}" --no-fail-fast -- --skip x86- || failed=1
wait "$guest" || failed=1
cat "$lab"
exit $failed
