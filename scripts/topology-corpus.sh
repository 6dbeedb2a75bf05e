#!/bin/sh
# Compares what Symbiont reads of copies of other machines' /sys with what hwloc and lscpu read of them. The copies are
# those that hwloc, util-linux and libvirt test themselves with; they are fetched from Debian's archive and never become
# part of this repository. Takes a few minutes; apt-get and an x86-64 machine.
#   scripts/topology-corpus.sh [FOLDER...]    FOLDER: more dumps, each a packed copy of /sys or an unpacked one
# What is compared, and what is printed: scripts/topology-corpus.py. Differences that are expected are listed with their
# reasons in scripts/topology-corpus.explained. Ends with 1 if there are others.
# Archives are kept in $SYMBIONT_TOPOLOGIES, by default ~/.cache/symbiont-topologies; those that were put there by
# hand are used, too. One that cannot be had is named and left out. Of the environment: DEBIAN_MIRROR.
set -eu
cd "$(dirname "$0")/.."
. scripts/debian-archive.sh
cache=${SYMBIONT_TOPOLOGIES:-${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-topologies}
suite=trixie
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

stop() { echo "topology-corpus: $1" >&2; exit 2; }
[ "$(uname -m)" = x86_64 ] || stop "hwloc and lscpu are fetched for x86-64 machines only"
for command in apt-get dpkg-deb curl python3 sha256sum; do
    command -v "$command" >/dev/null 2>&1 || stop "$command is missing"
done
[ -r "$keyring" ] || stop "no $keyring (package debian-archive-keyring)"

# Releases as Debian keeps them, the newest first: of dumps with one name the first counts.
fetch() {
    file=$cache/$(basename "$2")
    if [ ! -e "$file" ]; then
        curl -fsSL --retry 3 -o "$file.part" "$pool/$2" 2>"$work/log" ||
            { rm -f "$file.part"; echo "left out: $2: $(tail -n1 "$work/log")"; return; }
        mv "$file.part" "$file"
    fi
    echo "$1  $file" | sha256sum --check --status || stop "$file is not the pinned one: remove it"
    mkdir "$work/source"
    # shellcheck disable=SC2086 # there are several folders
    tar -xf "$file" -C "$work/source" --strip-components=1 --wildcards $3
    "$4"
    rm -rf "$work/source"
}

# dumps PREFIX FOLDER...: packed ones
dumps() {
    prefix=$1
    shift
    for folder in "$@"; do
        for dump in "$work/source/$folder"/*.tar.*; do
            [ -e "$work/dumps/$prefix-$(basename "$dump")" ] || mv "$dump" "$work/dumps/$prefix-$(basename "$dump")"
        done
    done
}

hwloc() { dumps hwloc tests/hwloc/linux tests/hwloc/x86+linux; }
util_linux() { dumps lscpu tests/ts/lscpu/dumps; }

# libvirt has what is below devices/system.
libvirt() {
    for system in "$work/source"/tests/virhostcpudata/*/ "$work/source"/tests/vircaps2xmldata/*/system/; do
        [ -d "$system/cpu" ] && [ ! -L "$system/cpu" ] && [ ! -L "${system%/}" ] || continue
        name=$(basename "${system%/system/}")
        dump=$work/dumps/libvirt-${name#linux-}
        mkdir -p "$dump/sys/devices"
        mv "$system" "$dump/sys/devices/system"
    done
}

mkdir "$work/dumps"
pool=${DEBIAN_MIRROR:-https://deb.debian.org/debian}/pool/main
fetch 06a0a2bdc0a5714e839164683846a0e936a896213758e9d37e49e232b89c58d4 h/hwloc/hwloc_2.12.0.orig.tar.bz2 \
    "*/tests/hwloc/linux/*.tar.* */tests/hwloc/x86+linux/*.tar.*" hwloc
fetch b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970 h/hwloc/hwloc_2.9.0.orig.tar.bz2 \
    "*/tests/hwloc/linux/*.tar.* */tests/hwloc/x86+linux/*.tar.*" hwloc
fetch f586e35d320ff537aab3ffeca37e9ecd482ccbe013590db4429a414d8aa6a728 u/util-linux/util-linux_2.41.5.orig.tar.xz \
    "*/tests/ts/lscpu/dumps/*.tar.*" util_linux
fetch 6bcb0c42c4580436fea262ced56f68a6afe20f7390b1bea2116718cc034a0283 libv/libvirt/libvirt_11.3.0.orig.tar.xz \
    "*/tests/virhostcpudata */tests/vircaps2xmldata" libvirt

# lstopo and lscpu with every library down to libc, run by the loader that comes with them.
archive "$suite" amd64
apt-get -q -y --no-install-recommends --download-only install hwloc-nox >"$work/log" 2>&1 &&
    download util-linux libsmartcols1 || stop "hwloc and lscpu: $(tail -n1 "$work/log")"
unpack "$work/root"
mkdir "$work/reference"
for program in lstopo-no-graphics lscpu; do
    cat >"$work/reference/${program%-no-graphics}" <<END
#!/bin/sh
exec "$work/root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$work/root/usr/lib/x86_64-linux-gnu" \\
    "$work/root/usr/bin/$program" "\$@"
END
    chmod +x "$work/reference/${program%-no-graphics}"
    "$work/reference/${program%-no-graphics}" --version
done

scripts/cargo.sh build --quiet --package symbiont-topology --features hwloc --example counts
counts=${CARGO_TARGET_DIR:-target}/debug/examples/counts
scripts/topology-corpus.py "$work/reference" "$counts" scripts/topology-corpus.explained "$work/dumps" "$@"
