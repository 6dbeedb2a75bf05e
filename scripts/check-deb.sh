#!/bin/bash
# Installs the Debian package in a minimal Debian of its own, tries what it brings, removes and purges it.
#   scripts/check-deb.sh [PACKAGE]    PACKAGE: by default the newest in target/debian
# Prints a line for each check, and lintian's remarks before; ends with 1 at the first check that fails, or if
# lintian finds an error. Takes root, debootstrap and lintian. Of the environment: SUITE, Debian's release
# [that of this machine, else trixie]; DEBIAN_MIRROR. The Debian is kept in ~/.cache/symbiont-deb and copied
# for each run.
set -euo pipefail
cd "$(dirname "$0")/.."
package=${1:-$(ls -t target/debian/symbiont_*.deb 2>/dev/null | head -n1)}
[ -f "$package" ] || { echo "check-deb: no package ${package:-in target/debian}: run 'make deb'" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "check-deb: a chroot takes root" >&2; exit 2; }
for tool in debootstrap lintian unshare; do
    command -v "$tool" >/dev/null || { echo "check-deb: apt-get install debootstrap lintian util-linux" >&2; exit 2; }
done
. /etc/os-release
[ "${ID:-}" = debian ] || VERSION_CODENAME=trixie
suite=${SUITE:-$VERSION_CODENAME}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
base=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-deb/$suite

lintian --tag-display-limit 0 --fail-on error "$package"

# What the package recommends and what reads its pages is there; Symbiont's dependencies are debootstrap's own.
if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=bash-completion,man-db,qemu-user "$suite" "$base/root" "$mirror" \
        >"$base/log" 2>&1 || { tail -n 5 "$base/log" >&2; exit 1; }
    touch "$base/complete"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a "$base/root" "$work/root"
cp "$package" "$work/root/tmp/symbiont.deb"
cp scripts/check-deb-inside.sh "$work/root/tmp/check.sh"
# The files that scripts/install.sh put, some of them compressed, and those that each package has.
{
    (cd target/deb/root && find . ! -type d | sed -e 's,^\.,,' -e 's,^\(.*/man/.*\|.*/changelog\)$,\1.gz,')
    printf '/usr/share/doc/symbiont/%s\n' changelog.Debian.gz copyright
} | LC_ALL=C sort >"$work/root/tmp/installed"

# In namespaces of its own: what is mounted and started there ends with it.
# shellcheck disable=SC2016 # the inner shell's variables
unshare --mount --pid --fork --kill-child sh -euc '
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount -t tmpfs tmpfs "$1/run"
    mount -t tmpfs tmpfs "$1/dev"
    for node in null zero full random urandom tty; do
        touch "$1/dev/$node" && mount --bind "/dev/$node" "$1/dev/$node"
    done
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$1" sh /tmp/check.sh
' sh "$work/root"
