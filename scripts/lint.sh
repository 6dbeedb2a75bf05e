#!/bin/sh
# Style, lints and documentation; each must be clean. A distribution's Rust may
# come without rustfmt or clippy: then that check is skipped, and said so.
set -eu
cd "$(dirname "$0")/.."

if scripts/cargo.sh fmt --version >/dev/null 2>&1; then
    scripts/cargo.sh fmt --all --check
    scripts/cargo.sh fmt --manifest-path fuzz/Cargo.toml --check
else
    echo "lint: rustfmt is not installed; style not checked"
fi

if scripts/cargo.sh clippy --version >/dev/null 2>&1; then
    scripts/cargo.sh clippy --workspace --all-targets --all-features --locked -- -D warnings
    # As guests of the lab get it.
    scripts/cargo.sh clippy -p symbiont-cli --bin symbiont --no-default-features --locked -- \
        -D warnings
else
    echo "lint: clippy is not installed; lints not checked"
fi

scripts/oldest-rust.sh

RUSTDOCFLAGS="-D warnings" scripts/cargo.sh doc --workspace --no-deps --all-features --locked --quiet

scripts/figures.py --check
scripts/lab-faults.py --check
scripts/words.sh
