#!/bin/bash
# All tests. The guest of the lab boots beside the others: it is an emulator that keeps one CPU busy
# for minutes, while most of the others sleep.
set -euo pipefail
cd "$(dirname "$0")/.."
# A shell's `&` and nohup have signals ignored, which stay so in what is started; some tests send them.
workspace=(env --default-signal=HUP,INT,QUIT,TERM scripts/cargo.sh test --workspace --all-features --locked)

"${workspace[@]}" --no-run
lab=$(mktemp)
trap 'rm -f "$lab"' EXIT
"${workspace[@]}" --test lab >"$lab" 2>&1 &
guest=$!
failed=0
# Names of the lab's scenarios begin with their guest's.
"${workspace[@]}" --no-fail-fast -- --skip x86- || failed=1
wait "$guest" || failed=1
cat "$lab"
exit $failed
