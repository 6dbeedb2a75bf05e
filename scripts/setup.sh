#!/bin/sh
# Installs what is missing on a Debian or Ubuntu machine, and nothing else.
#   scripts/setup.sh build   what building and the main job need
#   scripts/setup.sh test    also what the tests use
#   scripts/setup.sh scx     what the scheduler in the kernel is built with
#   scripts/setup.sh deb     also what makes the Debian package; check-deb: what checks it
set -eu

# Oldest Rust that builds Symbiont; the same as rust-version in Cargo.toml.
msrv_minor=85

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

missing=
need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

rust_minor() {
    "$(dirname "$0")/cargo.sh" --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'
}

rust_is_fine() {
    minor=$(rust_minor)
    [ -n "$minor" ] && [ "$minor" -ge "$msrv_minor" ]
}

need cc "gcc libc6-dev"
[ -n "$(ls -A /etc/ssl/certs 2>/dev/null)" ] || missing="$missing ca-certificates"
need make make
need xz xz-utils
need python3 python3
if [ "${1:-build}" = test ]; then
    need bash bash
    need c++ g++
    need node nodejs
    need javac default-jdk-headless
    # Ten times smaller than Go's own compiler, which does as well where it is installed.
    command -v go >/dev/null 2>&1 || need gccgo gccgo
    need bzip2 bzip2
    need lstopo-no-graphics hwloc-nox
    need setpriv util-linux
    need ps procps # whose kill the tests use
    need qemu-x86_64 qemu-user
    # Ubuntu has the keys of Debian's archive, for the guest lab, in a package.
    [ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        missing="$missing debian-archive-keyring"
fi

case ${1:-build} in
scx)
    # The oldest clang that will do is 16 (scx/build.rs); Debian 12 has it beside its usual one.
    clang_is_fine() {
        version=$("$1" -dumpversion 2>/dev/null) && [ "${version%%.*}" -ge 16 ]
    }
    found=
    for name in clang clang-21 clang-20 clang-19 clang-17 clang-16; do
        ! clang_is_fine "$name" || found=$name
    done
    if [ -z "$found" ]; then
        . /etc/os-release
        [ "${ID:-}${VERSION_ID:-}" = debian12 ] && missing="$missing clang-16" || missing="$missing clang"
    fi
    need pkg-config pkg-config
    [ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
    [ -e /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
    ;;
deb) need dpkg-shlibdeps dpkg-dev ;;
check-deb)
    need debootstrap debootstrap
    [ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        missing="$missing debian-archive-keyring"
    need lintian lintian
    need unshare util-linux
    ;;
esac

if ! rust_is_fine; then
    # Debian 12's own rustc is too old; its browser builds use a newer one.
    . /etc/os-release
    if [ "${VERSION_ID:-}" = 12 ] && [ "${ID:-}" = debian ]; then
        missing="$missing cargo-web rustc-web"
    else
        # Ubuntu keeps newer ones beside an old default; apt's lists tell which.
        command -v apt-get >/dev/null 2>&1 && $sudo apt-get update -q
        default=$(apt-cache policy cargo 2>/dev/null |
            sed -n 's/^ *Candidate: 1\.\([0-9]*\)\..*/\1/p')
        beside=$(apt-cache search --names-only '^cargo-1\.[0-9]+$' 2>/dev/null |
            cut -d' ' -f1 | sort -V | tail -n1)
        if [ "${default:-0}" -ge "$msrv_minor" ] || [ -z "$beside" ]; then
            missing="$missing cargo rustc"
        else
            missing="$missing $beside rustc${beside#cargo}"
        fi
    fi
fi

if [ -n "$missing" ]; then
    echo "Installing:$missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "setup: no apt-get here; please install:$missing" >&2
        exit 1
    fi
    $sudo apt-get update -q
    # shellcheck disable=SC2086 # the list is meant to be split
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $missing
fi

if ! rust_is_fine; then
    echo "setup: cargo $(rust_minor | sed 's/^/1./') is too old; Symbiont needs Rust 1.$msrv_minor or newer" >&2
    exit 1
fi
