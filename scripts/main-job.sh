#!/bin/sh
# The main job: builds what it needs, which is not all; says what this machine offers; then compares
# serial phases first with Linux for a minute, with synthetic and real programs.
set -eu
cd "$(dirname "$0")/.."
made=target/quick
# What building from nothing takes.
BUILD_CPU_S=190

cpus=$(nproc 2>/dev/null || echo 1)
if [ -x "$made/symbiont" ]; then building="what has changed"; else
    building="Symbiont, $(((BUILD_CPU_S / cpus + 59) / 60)) min or so"
fi
echo "Builds $building; then compares for about a minute how fast programs run next to each other, placed by Symbiont and by Linux."

scripts/setup.sh build
# In a folder of its own: what 'make build' makes for 'make install' is the whole, and optimised more.
"${CARGO:-scripts/cargo.sh}" build --profile quick --locked -p symbiont-cli -p symbiont-synth \
    --no-default-features --features symbiont-cli/bench

echo
"$made/symbiont" doctor
echo
# Measured anew each time: a finished campaign would only be told again.
rm -rf report/phases-quick
"$made/symbiont" bench phases --quick
