#!/bin/sh
# Style, lints and documentation; each must be clean. A distribution's Rust may
# come without rustfmt or clippy: then that check is skipped, and said so.
set -eu
cd "$(dirname "$0")/.."

# The workspaces beside this one name our crates in lock files of their own.
for workspace in fuzz scx; do
    scripts/cargo.sh update --quiet --workspace --locked --manifest-path "$workspace/Cargo.toml"
done

if scripts/cargo.sh fmt --version >/dev/null 2>&1; then
    scripts/cargo.sh fmt --all --check
    scripts/cargo.sh fmt --manifest-path fuzz/Cargo.toml --check
    scripts/cargo.sh fmt --manifest-path scx/Cargo.toml --check
else
    echo "lint: rustfmt is not installed; style not checked"
fi

if scripts/cargo.sh clippy --version >/dev/null 2>&1; then
    # As 'cargo clippy' calls it. The documentation is made with it, too: it then finds compiled what was checked.
    export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings
    scripts/cargo.sh check --workspace --all-targets --all-features --locked
else
    echo "lint: clippy is not installed; lints not checked"
fi
RUSTDOCFLAGS="-D warnings" scripts/cargo.sh doc --workspace --no-deps --all-features --locked --quiet
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS

scripts/oldest-rust.sh names

scripts/figures.py --check
scripts/lab-faults.py --check
scripts/words.sh
