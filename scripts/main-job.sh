#!/bin/sh
# The main job: what this machine offers, then a short comparison of serial
# phases first against the OS, with synthetic and real programs.
set -eu
cd "$(dirname "$0")/.."

target/release/symbiont doctor
echo
# Tells what came out, and where the report is.
# Measured anew each time: a finished campaign would only be told again.
rm -rf report/phases-short
target/release/symbiont bench phases --short
