#!/bin/sh
# Fetches what the guest lab needs that is not Symbiont's own: an emulator and
# kernels, from Debian's archive, unpacked into a folder outside of the checkout.
#   scripts/fetch-lab.sh    prints what it got, or "lab: skipped" and why
# The folder is $SYMBIONT_LAB, by default ~/.cache/symbiont-lab. Nothing is
# installed: apt has lists, cache and status of its own there, and dpkg only unpacks.
set -eu

lab=${SYMBIONT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-lab}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
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

complete() { [ -s "$lab/qemu/complete" ] && [ -s "$lab/x86_64/complete" ]; }

configure() {
    mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial"
    : >"$work/status"
    cat >"$work/parts/lab.sources" <<END
Types: deb
URIs: $mirror
Suites: $suite $suite-backports
Components: main
Architectures: amd64
Signed-By: $keyring
END
    cat >"$work/apt.conf" <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/parts";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$work/none";
Dir::State "$work";
Dir::State::Lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
END
    export APT_CONFIG="$work/apt.conf"
    apt-get -q update >"$work/log" 2>&1 || skip "apt-get update: $(tail -n1 "$work/log")"
}

# unpack FOLDER: all that was downloaded, as $lab/FOLDER.
unpack() {
    mkdir "$work/new"
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$work/new"
    done
    rm -f "$work"/cache/archives/*.deb
    rm -rf "${lab:?}/$1"
    mv "$work/new" "$lab/$1"
}

# The emulator with every library down to libc, so that it runs on any host.
fetch_qemu() {
    apt-get -q -y --no-install-recommends --download-only install qemu-system-x86 \
        >"$work/log" 2>&1 || skip "qemu-system-x86: $(tail -n1 "$work/log")"
    unpack qemu
    apt-cache policy qemu-system-x86 | sed -n 's/^ *Candidate: //p' >"$lab/qemu/complete"
}

# Names of kernels, the best first.
kernels() {
    for one in $series; do
        apt-cache search --names-only "^linux-image-$one\\.[0-9.]*[+a-z0-9]*-cloud-amd64\$" |
            cut -d' ' -f1 | sort -Vr
    done
    apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p'
}

fetch_kernel() {
    for name in $(kernels); do
        (cd "$work/cache/archives" && apt-get -q download "$name") >"$work/log" 2>&1 || continue
        unpack x86_64
        # Modules are not used: all that the lab needs is built in.
        rm -rf "$lab/x86_64/usr" "$lab/x86_64/lib"
        mv "$lab"/x86_64/boot/vmlinuz-* "$lab/x86_64/vmlinuz"
        mv "$lab"/x86_64/boot/config-* "$lab/x86_64/config"
        rm -rf "$lab/x86_64/boot"
        echo "$name" >"$lab/x86_64/complete"
        return
    done
    skip "no kernel: $(tail -n1 "$work/log")"
}

if ! complete; then
    configure
    [ -s "$lab/qemu/complete" ] || fetch_qemu
    [ -s "$lab/x86_64/complete" ] || fetch_kernel
fi
echo "lab: QEMU $(cat "$lab/qemu/complete"), $(cat "$lab/x86_64/complete") in $lab"
