#!/bin/sh
# Prints the path of a tool that is itself a Rust program; installs it first if it is missing.
#   scripts/tool.sh cargo-deb|cargo-deny|mdbook
# Each version is the newest that builds with the oldest Rust that builds Symbiont. The folder is
# $SYMBIONT_TOOLS, by default ~/.cache/symbiont-tools.
set -eu
tools=${SYMBIONT_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-tools}
case ${1:-} in
cargo-deb) version=3.8.0 options= ;;
# It is large, and runs for a second: it is not optimised.
cargo-deny) version=0.18.3 options=--debug ;;
mdbook) version=0.4.52 options="--no-default-features --features search" ;;
*)
    sed -n '2,/^set/{/^#/p}' "$0" >&2
    exit 2
    ;;
esac
root=$tools/$1-$version
if [ ! -x "$root/bin/$1" ]; then
    echo "tool: installing $1 $version into $root" >&2
    # Its own target folder: CARGO_TARGET_DIR is the project's.
    # shellcheck disable=SC2086 # the list is meant to be split
    "$(dirname "$0")/cargo.sh" install --locked --quiet --root "$root" --version "$version" \
        --target-dir "$tools/build" $options "$1" >&2
    rm -rf "$tools/build"
fi
echo "$root/bin/$1"
