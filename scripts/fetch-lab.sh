#!/bin/sh
# Fetches what the guest lab needs that is not Symbiont's own, from Debian's archive,
# unpacked into a folder outside of the checkout: for each architecture an emulator and
# a kernel; and, to build Symbiont for another one than this machine's, a compiler, a
# linker and libraries, for arm64 also those of the scheduler's loader.
#   scripts/fetch-lab.sh [ARCHITECTURE...]    x86_64 (the default), aarch64, powerpc64le
# prints what it got, or "lab: skipped" and why. The folder is $SYMBIONT_LAB, by default
# ~/.cache/symbiont-lab. Nothing is installed.
set -eu
. "$(dirname "$0")/debian-archive.sh"

lab=${SYMBIONT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-lab}
suite=trixie
# Kernels that the lab knows, the best first (6.18 has sched_ext; backports come
# and go); after them whatever the suite's own is.
series='6.18 6.17 6.16 6.19'

skip() {
    echo "lab: skipped: $1; the tests of guests are not run" >&2
    exit 0
}

[ "$(uname -m)" = x86_64 ] || skip "the emulator is fetched for x86-64 machines only"
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || skip "no apt-get here"
[ -r "$keyring" ] || skip "no $keyring (package debian-archive-keyring)"
mkdir -p "$lab"
work=$(mktemp -d "$lab/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# about ARCHITECTURE: what Debian calls it and its kernel, and which package emulates it
about() {
    case $1 in
    x86_64) debian=amd64 kernel=cloud-amd64 emulator=qemu-system-x86 ;;
    aarch64) debian=arm64 kernel=cloud-arm64 emulator=qemu-system-arm ;;
    powerpc64le) debian=ppc64el kernel=powerpc64le emulator=qemu-system-ppc ;;
    *) skip "no guest is a $1" ;;
    esac
}

complete() { [ -s "$lab/$1/complete" ]; }

# The lists of this machine's packages and of the guest's. One guest's are not spoilt by a list
# of another one that cannot be had: apt takes all of a suite or none.
configure() {
    [ "${configured:-}" != "$debian" ] || return 0
    other=$debian
    [ "$debian" != amd64 ] || other=
    # shellcheck disable=SC2086 # there may be no other one
    archive "$suite $suite-backports" amd64 $other
    if [ -n "$why" ]; then
        [ -n "$(apt-cache madison "$emulator")" ] || skip "$why"
        echo "lab: a list is missing, and newer kernels may be with it: $why" >&2
    fi
    configured=$debian
}

# The emulator with every library down to libc, so that it runs on any host; and what
# edits device trees.
fetch_qemu() {
    apt-get -q -y --no-install-recommends --download-only install \
        "$emulator" device-tree-compiler >"$work/log" 2>&1 || skip "$emulator: $(tail -n1 "$work/log")"
    unpack "$lab/qemu-$1"
    apt-cache policy "$emulator" | sed -n 's/^ *Candidate: //p' >"$lab/qemu-$1/complete"
}

# first_dependency PACKAGE PATTERN: the name of a dependency
first_dependency() {
    apt-cache depends "$1" | sed -n "s/^ *Depends: \\($2\\)\\(:.*\\)*\$/\\1/p" | head -n1
}

# Names of kernels, the best first.
kernels() {
    for one in $series; do
        apt-cache search --names-only "^linux-image-$one\\.[0-9.]*[+a-z0-9]*-$kernel\$" |
            cut -d' ' -f1 | sort -Vr
    done
    first_dependency "linux-image-$kernel:$debian" 'linux-image-[^ :]*'
}

fetch_kernel() {
    for name in $(kernels); do
        download "$name:$debian" || continue
        unpack "$lab/$1"
        # Modules are not used: all that the lab needs is built in.
        rm -rf "$lab/$1/usr" "$lab/$1/lib"
        mv "$lab/$1"/boot/vmlinu[xz]-* "$lab/$1/vmlinuz"
        mv "$lab/$1"/boot/config-* "$lab/$1/config"
        rm -rf "$lab/$1/boot"
        echo "$name" >"$lab/$1/complete"
        return
    done
    skip "no kernel: $(tail -n1 "$work/log")"
}

# rustc (the suite's is the oldest that builds Symbiont) and lld, with every library
# down to libc; the standard libraries for this machine, whose build scripts it compiles,
# and for the guest; libc and what a compiler adds to static programs. What is for this
# machine is linked by its own cc, and fetched once for all guests that are asked for.
fetch_rust() {
    guests="libstd-rust-dev:$debian libc6-dev:$debian libgcc-14-dev:$debian"
    if [ -n "${fetched:-}" ]; then
        own=
        mkdir "$work/new"
        cp -al "$lab/$fetched/usr" "$work/new"
    else
        own="rustc $(first_dependency libstd-rust-dev 'libstd-rust-1[^ :]*') libstd-rust-dev
            lld-19 libllvm19 libxml2 libz3-4 libedit2 libtinfo6 libffi8 libbsd0 libmd0 liblzma5
            zlib1g libzstd1 libstdc++6 libgcc-s1 libc6"
    fi
    # shellcheck disable=SC2086 # the lists are meant to be split
    download $own $guests || skip "rustc for $1: $(tail -n1 "$work/log")"
    unpack "$lab/rust-$1"
    # shellcheck disable=SC2016 # these are for the scripts
    root='$root/usr' all='"$@"'
    libraries="$root/lib/$1-linux-gnu" objects="$root/lib/gcc/$1-linux-gnu/14"
    tool "$1" rustc bin/rustc "--sysroot $root $all"
    tool "$1" ld bin/ld.lld-19 "--strip-all --sysroot=\$root -L$libraries -L$objects \\
    $libraries/crt1.o $libraries/crti.o $objects/crtbeginT.o $all \\
    $objects/crtend.o $libraries/crtn.o" "--argv0 ld.lld"
    "$lab/rust-$1/rustc" --version >"$work/version" 2>&1 ||
        skip "rustc for $1: $(tail -n1 "$work/version")"
    cp "$work/version" "$lab/rust-$1/complete"
    fetched=rust-$1
}

# What the scheduler's loader is linked with, and the headers of libc and of the kernel, for clang.
fetch_elf() {
    download "libelf-dev:$debian" "zlib1g-dev:$debian" "libzstd-dev:$debian" "libc6-dev:$debian" linux-libc-dev || {
        echo "lab: no libelf for $1: $(tail -n1 "$work/log"); its guests have no scheduler in the kernel" >&2
        return
    }
    unpack "$lab/elf-$1"
    apt-cache policy "libelf-dev:$debian" | sed -n 's/^ *Candidate: /libelf /p' >"$lab/elf-$1/complete"
}

# tool ARCHITECTURE NAME PROGRAM ARGUMENTS [OPTIONS]: a script that runs a program by the
# loader that was fetched with it
tool() {
    cat >"$lab/rust-$1/$2" <<END
#!/bin/sh
root=\$(dirname "\$0")
exec \$root/usr/lib64/ld-linux-x86-64.so.2 ${5-} --library-path \\
    \$root/usr/lib/x86_64-linux-gnu \$root/usr/$3 \\
    $4
END
    chmod +x "$lab/rust-$1/$2"
}

[ $# -gt 0 ] || set -- x86_64
for architecture in "$@"; do
    about "$architecture"
    complete "qemu-$architecture" || { configure; fetch_qemu "$architecture"; }
    complete "$architecture" || { configure; fetch_kernel "$architecture"; }
    got="QEMU $(cat "$lab/qemu-$architecture/complete"), $(cat "$lab/$architecture/complete")"
    if [ "$architecture" != x86_64 ]; then
        complete "rust-$architecture" || { configure; fetch_rust "$architecture"; }
        got="$got, $(cat "$lab/rust-$architecture/complete")"
        # QEMU's POWER guests are left to the kernel's own scheduler.
        if [ "$architecture" = aarch64 ]; then
            complete "elf-$architecture" || { configure; fetch_elf "$architecture"; }
            ! complete "elf-$architecture" || got="$got, $(cat "$lab/elf-$architecture/complete")"
        fi
    fi
    echo "lab: $architecture: $got in $lab"
done
