#!/bin/sh
# Gets networkx, the independent implementation that the tests of
# crates/core/matching ask, into a Python environment of its own under target/.
# What it found is kept in crates/core/matching/tests/golden/networkx.txt; to ask it
# about all instances again (about a minute):
#   UPDATE_GOLDEN=1 cargo test -p symbiont-matching networkx_finds
set -eu

cd "$(dirname "$0")/.."
python3 -m venv target/networkx
target/networkx/bin/pip install --quiet networkx
target/networkx/bin/python -c 'import networkx; print("networkx", networkx.__version__)'
