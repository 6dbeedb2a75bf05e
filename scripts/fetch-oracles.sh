#!/bin/sh
# Fetches the tables that the test of event encodings compares with, into
# target/oracles: perf's own (from Debian's or Ubuntu's linux-source package)
# and libpfm4 (from its source package, built for each architecture). Debian's
# backports and sid know processors that an older release does not.
# What cannot be had is named and left out; the test then skips it.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/target/oracles
work=$out/work
mkdir -p "$work"

skip() { echo "fetch-oracles: $1; that table is left out" >&2; }

# apt gets a source list of its own, so that the machine's stays as it is.
own() {
    tool=$1
    shift
    "$tool" -q -o Dir::Etc::sourcelist="$work/apt/src.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" "$@"
}

package_lists() {
    . /etc/os-release
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    case $ID in
        debian) archive='http://deb.debian.org/debian %s main' release=stable newest=stable-backports sources=sid ;;
        ubuntu)
            archive='http://archive.ubuntu.com/ubuntu %s main universe'
            release=$VERSION_CODENAME newest=$VERSION_CODENAME-updates sources=$VERSION_CODENAME
            ;;
        *) return 1 ;;
    esac
    # shellcheck disable=SC2059
    printf "deb $archive\ndeb $archive\ndeb-src $archive\n" $release $newest $sources >"$work/apt/src.list"
    own apt-get update
}

# The newest linux-source package: its name ends in a version.
perf_tables() {
    [ -d "$out/pmu-events/arch" ] && return
    package=$(own apt-cache search --names-only '^linux-source-[0-9.]+$' | cut -d' ' -f1 | sort -V | tail -n1)
    [ -n "$package" ] || { skip "no linux-source package here"; return; }
    (cd "$work" && own apt-get download "$package") || { skip "cannot download $package"; return; }
    deb=$(find "$work" -name "$package"_*.deb | head -n1)
    tarball=$(dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -E '/linux-source-[0-9.]+\.tar\.[a-z0-9]+$' | head -n1)
    case $tarball in
        *.xz) unpack=--xz ;;
        *.bz2) unpack=--bzip2 ;;
        *) unpack=--gzip ;;
    esac
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "$tarball" |
        tar -x $unpack -C "$work" --wildcards '*/tools/perf/pmu-events/arch/*' &&
        mkdir -p "$out/pmu-events" &&
        mv "$work"/linux-source-*/tools/perf/pmu-events/arch "$out/pmu-events/arch" ||
        { skip "cannot unpack $package"; return; }
    basename "$deb" .deb >"$out/pmu-events/source"
    rm -rf "$work"/linux-source-* "$deb"
}

libpfm() {
    [ -d "$out/libpfm4" ] && return
    (cd "$work" && own apt-get source --download-only --tar-only libpfm4) ||
        { skip "cannot download the source of libpfm4"; return; }
    mkdir -p "$work/tools"
    for architecture in x86_64 powerpc arm64; do
        rm -rf "$work/source"
        mkdir "$work/source"
        tar -x -C "$work/source" --strip-components=1 -f "$work"/libpfm4_*.orig.tar.* ||
            { skip "cannot unpack the source of libpfm4"; return; }
        make -s -C "$work/source" ARCH=$architecture CONFIG_PFMLIB_SHARED=n DBG=-w lib >/dev/null 2>&1 &&
            make -s -C "$work/source/examples" ARCH=$architecture CONFIG_PFMLIB_SHARED=n DBG=-w check_events >/dev/null 2>&1 &&
            cp "$work/source/examples/check_events" "$work/tools/check_events-$architecture" ||
            skip "libpfm4 does not build for $architecture"
    done
    basename "$work"/libpfm4_*.orig.tar.* >"$work/tools/source"
    mv "$work/tools" "$out/libpfm4"
    rm -rf "$work/source" "$work"/libpfm4_*
}

[ -d "$out/pmu-events/arch" ] && [ -d "$out/libpfm4" ] && exit
if ! command -v apt-get >/dev/null 2>&1; then
    skip "no apt-get here"
elif ! package_lists; then
    skip "no package lists"
else
    perf_tables
    libpfm
fi
rm -rf "$work/apt"
