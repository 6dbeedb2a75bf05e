#!/bin/sh
# The main job: builds what it needs, which is not all; says what this machine offers; then compares
# serial phases first with Linux for two minutes, with synthetic and real programs.
set -eu
cd "$(dirname "$0")/.."
made=target/quick
# What building from nothing takes.
BUILD_CPU_S=190

cpus=$(nproc 2>/dev/null || echo 1)
building="Symbiont, $(((BUILD_CPU_S / cpus + 59) / 60)) min or so"
[ ! -x "$made/symbiont" ] || building="what has changed of $building"
echo "Builds $building; then compares for about two minutes how fast programs run next to each other, placed by Symbiont and by Linux."

scripts/setup.sh build
# In a folder of its own: what 'make build' makes for 'make install' is the whole, and optimised more.
"${CARGO:-scripts/cargo.sh}" build --profile quick --locked -p symbiont-cli -p symbiont-synth \
    --no-default-features --features symbiont-cli/bench

echo
"$made/symbiont" doctor
echo
# Measured anew each time: a finished campaign would only be told again. One of this build that was stopped goes on.
kept=report/phases-quick
if [ -e "$kept/index.html" ] || [ "$made/symbiont" -nt "$kept/machine.json" ]; then rm -rf "$kept"; fi
"$made/symbiont" bench phases --quick
