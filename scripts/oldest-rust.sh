#!/bin/sh
# Whether all compiles with the oldest Rust that README.md names.
#   scripts/oldest-rust.sh          the workspace with all features and its tests, the program as make run builds it,
#                                   and the fuzz targets: some five minutes
#   scripts/oldest-rust.sh names    only whether all files name the same one. For make lint: what is newer in Rust's
#                                   library, clippy finds by it (incompatible_msrv); newer syntax it does not
# With this machine's Rust if it is that one, else with Debian's of the suite that has it, unpacked into
# ~/.cache/symbiont-rust (110 MB, once); nothing is installed.
# It compiles into target/oldest-rust. Of the environment: DEBIAN_MIRROR, XDG_CACHE_HOME.
set -eu
cd "$(dirname "$0")/.."
case "$#${1:-}" in 0 | 1names) ;; *) sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2 ;; esac
. scripts/debian-archive.sh
suite=trixie

fail() { echo "oldest-rust: $*" >&2; exit 1; }

oldest=$(sed -n 's/.*needs Rust \(1\.[0-9]*\) or newer.*/\1/p' README.md)
[ -n "$oldest" ] || fail "README.md does not say which Rust Symbiont needs"
minor=${oldest#1.}
# named FILE PATTERN: a file that names it, too, names the same.
named() { grep -q -e "$2" "$1" || fail "README.md names Rust $oldest as the oldest, $1 another one"; }
named docs/introduction.md "Rust $oldest or newer"
named Cargo.toml "^rust-version = \"$oldest\""
named fuzz/Cargo.toml "^rust-version = \"$oldest\""
named scripts/cargo.sh "^oldest=$minor\>"
named scripts/setup.sh "^msrv_minor=$minor\$"
[ "${1:-}" != names ] || exit 0

is_oldest() { case $("$@" --version 2>/dev/null) in *" $oldest."*) ;; *) false ;; esac; }

# program NAME: a script that runs Debian's by the loader and with the libraries that were fetched with it.
program() {
    cat >"$rust/$1" <<END
#!/bin/sh
exec "$loader" --library-path "$libraries" "$rust/root/usr/bin/$1" ${2-} "\$@"
END
    chmod +x "$rust/$1"
}

# With every library down to libc, so that it runs on any host; what it compiles for the host, such as build
# scripts, is linked by the host's own cc, whose packages need not be fetched.
fetch() {
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || {
        echo "oldest-rust: no apt-get here to fetch Rust $oldest; not checked" >&2
        exit 0
    }
    [ -r "$keyring" ] || fail "no $keyring (package debian-archive-keyring)"
    mkdir -p "$rust"
    work=$(mktemp -d "$rust/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    architecture=$(dpkg --print-architecture)
    archive "$suite" "$architecture"
    [ -z "$why" ] || fail "$why"
    cat >"$work/status" <<END
Package: cc-of-the-host
Status: install ok installed
Version: 1
Architecture: $architecture
Provides: gcc (= 1:99), binutils (= 99), libc-dev
Maintainer: none
Description: what is installed already
END
    apt-get -q -y --no-install-recommends --download-only install cargo rustc >"$work/log" 2>&1 ||
        fail "cargo and rustc: $(tail -n1 "$work/log")"
    unpack "$rust/root"
    loader=$(ls "$rust"/root/usr/lib*/ld*.so.[0-9]* | head -n1)
    libraries=$(dirname "$(ls "$rust"/root/usr/lib/*/libc.so.6)")
    program rustc "--sysroot '$rust/root/usr'"
    program rustdoc "--sysroot '$rust/root/usr'"
    program cargo
    is_oldest "$rust/cargo" && is_oldest "$rust/rustc" ||
        fail "Debian's Rust of $suite is not $oldest but: $("$rust/rustc" --version 2>&1 | tail -n1)"
    touch "$rust/complete"
}

cargo=scripts/cargo.sh
if ! is_oldest "$cargo"; then
    rust=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-rust/$oldest
    [ -e "$rust/complete" ] || fetch
    cargo=$rust/cargo
    export RUSTC="$rust/rustc" RUSTDOC="$rust/rustdoc"
    unset APT_CONFIG
fi
# The same flags and profile for all, so that each finds what those before it compiled of what others wrote.
export RUSTFLAGS="--cfg fuzzing --cap-lints allow" CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true
# Checking links nothing: libFuzzer itself need not be compiled.
export CUSTOM_LIBFUZZER_PATH="$PWD/fuzz/Cargo.toml"
check() {
    "$cargo" check --release --locked --target-dir target/oldest-rust "$@" ||
        fail "this is Rust $oldest, the oldest that README.md names"
}
check --workspace --all-features --all-targets
# What there is only where a feature is missing: as make run builds it.
check -p symbiont-cli --no-default-features --features symbiont-cli/bench
check --manifest-path fuzz/Cargo.toml --all-targets
