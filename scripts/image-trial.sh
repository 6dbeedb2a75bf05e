#!/bin/bash
# Runs the image that scripts/image.sh made with the privileges of packaging/kubernetes/base, and checks that it places
# programs of this machine, of root and of another user, and that their masks are as before when it ends, and when it is
# killed and started again, and when a cpuset around them shrank and grew. As with cgroup v2, the container has a cgroup
# namespace of its own.
#   scripts/image-trial.sh [IMAGE]    IMAGE: by default localhost/symbiont:VERSION
# Takes root, two CPUs, podman with runc (crun refuses hybrid cgroups), setpriv and taskset. Ends with 1 if a check
# fails.
set -euo pipefail
cd "$(dirname "$0")/.."
image=${1:-localhost/symbiont:$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)}
[ "$(id -u)" = 0 ] || { echo "image-trial: needs root" >&2; exit 2; }
for command in podman runc setpriv taskset; do
    command -v "$command" >/dev/null || { echo "image-trial: $command is missing" >&2; exit 2; }
done

dir=$(mktemp -d /tmp/image-trial.XXXXXX)
mkdir "$dir"/{rules,run,state}
name=${dir##*/}
busy=()
# shellcheck disable=SC2317 # called by the trap
teardown() {
    podman rm --force --time 10 "$name" >/dev/null 2>&1 || true
    kill "${busy[@]}" 2>/dev/null || true
    sleep 0.5
    find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} \; 2>/dev/null || true
    rm -rf "$dir"
}
trap teardown EXIT
fail() { echo "image-trial: FAILED: $*" >&2; podman logs "$name" >&2 || true; exit 1; }

# A name of their own, by which the rule finds them.
cp "$(command -v sh)" "$dir/image-trial"
chmod 755 "$dir" "$dir/image-trial"
printf '[[rule]]\ncomm = "image-trial"\nclass = "latency"\n' >"$dir/rules/50-trial.toml"
cp packaging/kubernetes/base/symbiontd.toml "$dir/symbiontd.toml"
"$dir/image-trial" -c 'while :; do :; done' &
busy+=($!)
setpriv --reuid nobody --regid nogroup --clear-groups "$dir/image-trial" -c 'while :; do :; done' &
busy+=($!)

masks() { for process in "${busy[@]}"; do taskset -pc "$process" | sed 's/.*: //'; done | paste -sd' '; }
before=$(masks)
start() {
    podman --runtime runc --cgroup-manager cgroupfs run --detach --name "$name" --pid host --network none \
        --cap-drop all --cap-add SYS_NICE --cgroupns private --cgroup-parent "/$name" --read-only \
        --read-only-tmpfs=false --security-opt no-new-privileges --ulimit nofile=1024:1024 \
        --ulimit nproc=1024:1024 --volume "$dir/symbiontd.toml:/etc/symbiont/symbiontd.toml:ro" \
        --volume "$dir/rules:/etc/symbiont/rules.d:ro" --volume "$dir/run:/run/symbiont:rw" \
        --volume "$dir/state:/var/lib/symbiont:rw" --volume /sys/fs/cgroup:/sys/fs/cgroup:ro "$image" >/dev/null
}
placed() {
    for _ in {1..100}; do
        case $(masks) in
        *[,-]*) sleep 0.2 ;;
        *) return ;;
        esac
    done
    fail "not placed: masks are $(masks)"
}

start
placed
echo "image-trial: placed: masks $(masks), before $before"
! podman logs "$name" 2>&1 | grep "cgroups of other processes" || fail "it does not see the node's cgroups"
podman stop --time 10 "$name" >/dev/null
[ "$(masks)" = "$before" ] || fail "after its end the masks are $(masks), not $before"
echo "image-trial: ended: masks as before"
podman rm "$name" >/dev/null

start
placed
kill -KILL "$(podman inspect --format '{{.State.Pid}}' "$name")"
podman wait "$name" >/dev/null
echo "image-trial: killed: masks $(masks)"
podman rm "$name" >/dev/null
rm "$dir/rules/50-trial.toml"
start
for _ in {1..50}; do podman logs "$name" 2>&1 | grep -q "restored what a killed manager" && break; sleep 0.2; done
podman logs "$name" 2>&1 | grep -q "restored what a killed manager left changed: 2 threads" ||
    fail "no word of a restore"
podman stop --time 10 "$name" >/dev/null
[ "$(masks)" = "$before" ] || fail "after another start and end the masks are $(masks), not $before"
echo "image-trial: started again and ended: masks as before"
podman rm "$name" >/dev/null

# As the kubelet's static CPU manager does it.
cpuset=/sys/fs/cgroup/cpuset
[ -d "$cpuset" ] || cpuset=/sys/fs/cgroup
# Next to the daemon's own: as pods are, it is below one that both are in.
own=$cpuset/$name/programs
start
if ! mkdir "$own" 2>/dev/null || [ ! -e "$own/cpuset.cpus" ]; then
    echo "image-trial: no cpuset can be made here: what changes of them do was not tried"
    exit
fi
all=$(taskset -pc $$ | sed 's/.*: //')
resize() { echo "$1" >"$own/cpuset.cpus"; sleep 3; }
[ ! -e "$cpuset/cpuset.effective_mems" ] || cat "$cpuset/cpuset.effective_mems" >"$own/cpuset.mems"
resize "$all"
for process in "${busy[@]}"; do echo "$process" >"$own/cgroup.procs"; done
podman stop --time 10 "$name" >/dev/null
podman rm "$name" >/dev/null
printf '[[rule]]\ncomm = "image-trial"\nclass = "latency"\n' >"$dir/rules/50-trial.toml"
start
placed
for one in "${all%%[,-]*}" "${all##*[,-]}"; do
    resize "$one"
    [ "$(masks)" = "$one $one" ] || fail "in the cpuset $one the masks are $(masks)"
    resize "$all"
done
podman stop --time 10 "$name" >/dev/null
[ "$(masks)" = "$before" ] || fail "after changes of the cpuset the masks are $(masks), not $before"
echo "image-trial: cpuset changed, and ended: masks as before"
