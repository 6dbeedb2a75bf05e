#!/bin/sh
# Fetches the tables that the test of event encodings compares with, into
# target/oracles: perf's own (from Debian's or Ubuntu's linux-source package)
# and libpfm4 (from its source package, built for each architecture).
# What cannot be had is named and left out; the test then skips it.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/target/oracles
work=$out/work
mkdir -p "$work"

skip() { echo "fetch-oracles: $1; that table is left out" >&2; }

# The newest linux-source package: its name ends in a version.
perf_tables() {
    [ -d "$out/pmu-events/arch" ] && return
    package=$(apt-cache search --names-only '^linux-source-[0-9.]+$' | cut -d' ' -f1 | sort -V | tail -n1)
    [ -n "$package" ] || { skip "no linux-source package here"; return; }
    (cd "$work" && apt-get download -q "$package") || { skip "cannot download $package"; return; }
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
    rm -rf "$work"/linux-source-* "$deb"
}

# apt gets a source list of its own, so that the machine's stays as it is.
libpfm_source() {
    . /etc/os-release
    case $ID in
        debian) mirror=http://deb.debian.org/debian component=main ;;
        ubuntu) mirror=http://archive.ubuntu.com/ubuntu component=universe ;;
        *) return 1 ;;
    esac
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    echo "deb-src $mirror $VERSION_CODENAME $component" >"$work/apt/src.list"
    set -- -q -o Dir::Etc::sourcelist="$work/apt/src.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache"
    apt-get "$@" update && (cd "$work" && apt-get "$@" source --download-only libpfm4)
}

libpfm() {
    [ -d "$out/libpfm4" ] && return
    libpfm_source || { skip "cannot download the source of libpfm4"; return; }
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
    mv "$work/tools" "$out/libpfm4"
    rm -rf "$work/source" "$work/apt" "$work"/libpfm4_*
}

if command -v apt-get >/dev/null 2>&1; then
    perf_tables
    libpfm
else
    skip "no apt-get here"
fi
