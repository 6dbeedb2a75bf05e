#!/bin/bash
# Runs README's two commands, make run and make test, on a fresh machine: a minimal Debian of its own in which
# there are git, make, sudo and certificates, and nothing else of what Symbiont needs.
#   scripts/fresh-machine.sh [--user] [--keep] SUITE [COMMIT]
# SUITE: Debian's release: bookworm, trixie, forky, sid. COMMIT: by default the last one; what is not committed is
# left out. --user: as an ordinary user with sudo, not as root. --keep: the Debian is left, for a second look, and
# how to enter it is said.
# Prints what both print, and of each how it ended, its time, the disk space it took and the packages it installed;
# ends with 0 if both did. Takes root and debootstrap, half an hour to two hours and 15 GB of ~/.cache/symbiont-fresh,
# where the Debian is kept and copied for each run.
# Of the environment: DEBIAN_MIRROR. Registries are asked as this machine asks them: with its names and certificates,
# its settings of apt and cargo and its proxies.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
usage() { sed -n '2,/^set/{/^#/p}' "$0"; }
misused() { { echo "fresh-machine: $1"; usage; } >&2; exit 2; }
who=root home=/root keep=
while [ $# -gt 0 ]; do
    case $1 in
    --user) who=user home=/home/user ;;
    --keep) keep=1 ;;
    # Enters a Debian that was kept.
    --inside) break ;;
    -h | --help) usage; exit ;;
    -*) misused "unknown option $1" ;;
    *) break ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || { echo "fresh-machine: a chroot takes root" >&2; exit 2; }

# inside ROOT COMMAND...: in namespaces of its own, so that what is mounted and started there ends with it.
inside() {
    # shellcheck disable=SC2016 # the inner shell's variables
    unshare --mount --pid --ipc --fork --kill-child sh -euc '
        root=$1
        shift
        mount --make-rprivate /
        # A mount of its own, as a root is.
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount -t tmpfs tmpfs "$root/run"
        mount -t tmpfs -o mode=755 tmpfs "$root/dev"
        for node in null zero full random urandom tty kvm; do
            [ ! -e "/dev/$node" ] || { touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"; }
        done
        mkdir -m 1777 "$root/dev/shm" "$root/run/lock"
        mkdir "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
        ln -s pts/ptmx "$root/dev/ptmx"
        ln -s /proc/self/fd "$root/dev/fd"
        for stream in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${stream%:*}" "$root/dev/${stream#*:}"; done
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
            chroot "$root" "$@"
    ' sh "$@"
}
# as WHO SCRIPT: a shell's script as that user, in the clone.
as() {
    local name=$1 folder=/root
    [ "$name" = root ] || folder=/home/$name
    inside "$root" setpriv --reuid "$name" --regid "$name" --init-groups \
        env HOME="$folder" USER="$name" LOGNAME="$name" SHELL=/bin/bash sh -c "cd; . ./.passed-on; cd symbiont; $2"
}

if [ "${1:-}" = --inside ]; then
    [ $# -eq 4 ] || misused "--inside ROOT USER COMMANDS"
    [ -d "$2" ] || misused "no folder $2"
    root=$2
    as "$3" "$4"
    exit
fi

[ $# -ge 1 ] && [ $# -le 2 ] || misused "SUITE [COMMIT], not $# arguments"
suite=$1
# It names a folder that is removed.
case $suite in bookworm | trixie | forky | sid) ;; *) misused "unknown suite '$suite'" ;; esac
commit=$(git rev-parse --verify --quiet "${2:-HEAD}^{commit}") || { echo "fresh-machine: no commit $2" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh-machine: apt-get install debootstrap" >&2; exit 2; }
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
base=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-fresh/$suite

if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    # An older debootstrap does not know the newest suites: they are made as sid is.
    recipes=/usr/share/debootstrap/scripts recipe=$suite
    [ -e "$recipes/$suite" ] || recipe=sid
    debootstrap --variant=minbase --include=ca-certificates,git,make,sudo "$suite" "$base/root" "$mirror" \
        "$recipes/$recipe" >"$base/log" 2>&1 || { tail -n 5 "$base/log" >&2; exit 1; }
    touch "$base/complete"
fi
work=$(mktemp -d "$base/run.XXXXXX")
root=$work/root
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp -a "$base/root" "$root"

# How registries are asked.
cp -L /etc/hosts /etc/resolv.conf "$root/etc"
find -L /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} + 2>/dev/null ||
    true
apt-config dump 2>/dev/null | grep -iE '^Acquire::(Check-|Retries|[a-z]+::(Proxy|Timeout))' \
    >"$root/etc/apt/apt.conf.d/90fresh-machine" || true
[ "$who" = root ] || {
    chroot "$root" useradd --create-home --shell /bin/bash "$who"
    echo "$who ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$who"
}
for config in config.toml config; do
    [ ! -f "${CARGO_HOME:-$HOME/.cargo}/$config" ] ||
        install -D -m 644 "${CARGO_HOME:-$HOME/.cargo}/$config" "$root$home/.cargo/$config"
done
(
    for name in $(compgen -e | grep -E '^(https?|ftp|no|all)_proxy$|^(HTTPS?|FTP|NO|ALL)_PROXY$|^CARGO_(HTTP|NET|SOURCE)_'); do
        printf 'export %s=%q\n' "$name" "${!name}"
    done
) >"$root$home/.passed-on"
inside "$root" update-ca-certificates >/dev/null 2>&1

git clone --quiet --no-hardlinks --no-checkout . "$root$home/symbiont"
git -C "$root$home/symbiont" checkout --quiet --detach "$commit"
[ "$who" = root ] || chroot "$root" chown -R "$who:$who" "$home"
echo "fresh-machine: $suite, as $who, $(git log -1 --format='%h %s' "$commit")"

used() { du -sxm "$root" | cut -f1; }
packages() { chroot "$root" dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort; }
# does NAME: "make NAME"; its row goes to $work/rows.
does() {
    local began=$SECONDS before status=0 ended
    before=$(used)
    packages >"$work/before"
    as "$who" "make $1" </dev/null || status=$?
    ended="ended with $status after $((SECONDS - began)) s, $(($(used) - before)) MB"
    packages | comm -13 "$work/before" - >"$work/installed"
    echo "fresh-machine: $suite, as $who: make $1: $ended, $(wc -l <"$work/installed") packages installed:" \
        "$(tr '\n' ' ' <"$work/installed")" | tee -a "$work/rows"
    return "$status"
}
failed=0
does run || failed=1
does test || failed=1
cat "$work/rows"
[ -z "$keep" ] || echo "fresh-machine: kept; to enter it: scripts/fresh-machine.sh --inside $root $who bash"
exit $failed
