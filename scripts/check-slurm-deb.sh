#!/bin/bash
# Makes the package of the SPANK plugin (slurm/) in a Debian of its own with that Debian's Slurm, installs it, and has
# Slurm load it; a package for another Slurm must be refused.
#   scripts/check-slurm-deb.sh [SUITE]    SUITE: Debian's release [bookworm]
# Prints a line for each check; ends with 1 at the first that fails. Takes root and debootstrap. Of the environment:
# DEBIAN_MIRROR. The Debian is kept in ~/.cache/symbiont-deb and copied for each run.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
base=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-deb/$suite-slurm
[ "$(id -u)" = 0 ] || { echo "check-slurm-deb: a chroot takes root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "check-slurm-deb: apt-get install debootstrap" >&2; exit 2; }

if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=gcc,libc6-dev,make,libslurm-dev,slurm-client,slurm-wlm-basic-plugins \
        "$suite" "$base/root" "$mirror" >"$base/log" 2>&1 || { tail -n 5 "$base/log" >&2; exit 1; }
    touch "$base/complete"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a "$base/root" "$work/root"
mkdir -p "$work/root/tmp/symbiont/packaging"
cp -a slurm Cargo.toml "$work/root/tmp/symbiont"
cp -a packaging/debian "$work/root/tmp/symbiont/packaging"

cat >"$work/root/tmp/check.sh" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /tmp/symbiont
fail() { echo "check-slurm-deb: $*" >&2; exit 1; }
say() { echo "ok: $*"; }
release=$(dpkg-query -W -f '${Version}' slurm-client | cut -d. -f1,2)
mkdir -p /etc/slurm /tmp/out
printf '%s\n' ClusterName=c SlurmctldHost=localhost PlugStackConfig=/etc/slurm/plugstack.conf >/etc/slurm/slurm.conf
echo "include /etc/slurm/plugstack.conf.d/*.conf" >/etc/slurm/plugstack.conf
offers() { srun --help 2>&1 | grep -e "$1"; }

make -C slurm deb OUT=/tmp/out >/dev/null
package=$(ls /tmp/out/symbiont-slurm_*.deb)
case $package in *"+slurm${release}_"*) say "${package##*/} is made for Slurm $release" ;; *) fail "$package is not for $release" ;; esac
! offers --symbiont= || fail "srun has the option without the plugin"
apt-get install -y --no-install-recommends "$package" >/tmp/apt 2>&1 || { cat /tmp/apt; fail "it is not installed"; }
offers --symbiont= || fail "srun does not load the plugin"
say "srun loads it"
srun --symbiont=fast true >/tmp/refused 2>&1 && fail "a class that there is not is taken"
grep -m1 "no such class" /tmp/refused || fail "a class that there is not is not named"

sed -i 's/\(SLURM_VERSION_NUMBER *\)0x[0-9a-fA-F]*/\10x630100/' /usr/include/slurm/slurm_version.h
make -C slurm deb OUT=/tmp/out >/dev/null
! apt-get install -y --no-install-recommends /tmp/out/symbiont-slurm_*+slurm99.01_*.deb >/tmp/apt 2>&1 ||
    fail "a package for another Slurm is installed"
grep -m1 "Depends: slurm-wlm-basic-plugins (>= 99.01)" /tmp/apt || { cat /tmp/apt; fail "apt gives another reason"; }
say "apt refuses a package for Slurm 99.01"

dpkg --purge symbiont-slurm >/dev/null 2>&1
[ ! -e /etc/slurm/plugstack.conf.d/symbiont.conf ] && [ ! -e /usr/lib/symbiont ] || fail "something of it is left"
! offers --symbiont= || fail "srun has the option after the package is gone"
say "purged, nothing of it is left, and srun goes on without it"
END
unshare --mount --pid --fork --kill-child sh -euc '
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    for node in null zero urandom; do touch "$1/dev/$node" && mount --bind "/dev/$node" "$1/dev/$node"; done
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$1" sh /tmp/check.sh
' sh "$work/root"
echo "check-slurm-deb: $suite: all as it should be"
