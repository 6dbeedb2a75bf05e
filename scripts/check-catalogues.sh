#!/bin/sh
# Compares the encoding of every event of every catalogue with perf's own
# tables and with libpfm4, and prints what each of them confirms.
set -eu
cd "$(dirname "$0")/.."
scripts/fetch-oracles.sh
cat target/oracles/*/source 2>/dev/null || true
exec scripts/cargo.sh test --locked -q -p symbiont-counters --test encodings -- --nocapture
