#!/bin/bash
# Starts containers of the runtimes that are installed here, a daemon with rules of each kind, and checks names,
# classes, release at the end of a container, and that nothing stays changed. Says for each runtime whether it ran.
#   scripts/containers-trial.sh [SYMBIONT [USER]]   SYMBIONT: the binary, default target/release/symbiont
#                                                   USER: for rootless podman, with ranges in /etc/subuid; without one,
#                                                   a user is made for it, and removed
# Takes root, python3 and Debian's packages: busybox-static, and as many as there are of runc, crun, podman with uidmap,
# containerd, docker.io. Files are in a temporary folder, but for what rootless podman keeps in the home of USER, and
# are removed, as are all containers, and the empty folders and cgroups that the runtimes make elsewhere, where they
# were not before: also at an interrupt. Some versions of dockerd make /etc/docker/key.json, which stays. Ends with 1
# if a check fails; a runtime that is missing or does not start here is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
symbiont=$(realpath "${1:-target/release/symbiont}")
user=${2:-}
[ "$(id -u)" = 0 ] || { echo "containers-trial: needs root" >&2; exit 2; }
for command in python3 busybox "$symbiont"; do
    command -v "$command" >/dev/null || { echo "containers-trial: $command is missing" >&2; exit 2; }
done

dir=$(mktemp -d /tmp/containers-trial.XXXXXX)
chmod 755 "$dir"
failed=0
interrupted=
undo=()

# What runtimes make outside of the folder that they are given, that in a folder before the folder.
made_elsewhere() {
    local hierarchy name
    while read -r hierarchy; do
        for name in libpod_parent/conmon libpod_parent docker default; do echo "$hierarchy/$name"; done
    done < <(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts)
    printf '%s\n' /run/containerd/{fifo,s,runc/default,runc} /run/containerd /run/docker/plugins /run/docker /run/runc \
        /var/lib/containerd/opt/{bin,lib} /var/lib/containerd/opt /var/lib/containerd /etc/docker \
        /var/lib/containers/cache/blob-info-cache-v1.boltdb /var/lib/containers/cache /var/lib/containers
}
absent=()
while read -r path; do [ -e "$path" ] || absent+=("$path"); done < <(made_elsewhere)
# Removes of it what was not there before and is empty now; a cgroup is empty a moment after its last process ended.
# shellcheck disable=SC2317 # called by the trap
remove_made() {
    local path left
    for _ in {1..10}; do
        left=()
        for path in "${absent[@]}"; do
            case $path in
            *.boltdb) rm -f "$path" ;;
            *) rmdir "$path" 2>/dev/null ;;
            esac
            [ ! -e "$path" ] || left+=("$path")
        done
        [ ${#left[@]} != 0 ] || return 0
        sleep 0.2
    done
    echo "containers-trial: made while it ran, and not empty: ${left[*]}" >&2
}
# What is to be undone is noted before it is done: an interrupt can come at any time.
# shellcheck disable=SC2317 # called by the trap
teardown() {
    local at pid
    trap '' INT TERM HUP
    set +eu
    [ -z "$interrupted" ] || echo "containers-trial: interrupted: removing all containers" >&2
    for ((at = ${#undo[@]} - 1; at >= 0; at--)); do eval "${undo[at]}" >/dev/null 2>&1 </dev/null || true; done
    # Each container has this mark among its variables.
    for pid in $(grep -lsz "^SYMBIONT_TRIAL=$dir\$" /proc/[0-9]*/environ | cut -d/ -f3); do
        echo "containers-trial: process $pid was left, and is killed" >&2
        kill -KILL "$pid" 2>/dev/null || true
    done
    remove_made
    if [ "$failed" = 0 ]; then rm -rf "$dir"; else echo "containers-trial: logs are in $dir" >&2; fi
}
trap teardown EXIT
trap 'interrupted=1; exit 130' INT
trap 'interrupted=1; exit 143' TERM HUP
fail() { echo "   FAILED: $*"; failed=1; }
row() { printf '== %-18s %s\n' "$1" "$2"; }
why() { tail -n1 "$1" | cut -c1-160; }
has() { command -v "$1" >/dev/null; }

# A root file system of busybox, and an image of it as `docker save` writes one.
mkdir -p "$dir"/{rootfs/{bin,proc,dev,sys,tmp,etc},state,rules}
cp "$(command -v busybox)" "$dir/rootfs/bin/busybox"
for applet in sh sleep; do ln -s busybox "$dir/rootfs/bin/$applet"; done
tar -C "$dir/rootfs" -cf "$dir/layer.tar" .
python3 - "$dir" <<'PY'
import hashlib, io, json, sys, tarfile
folder = sys.argv[1]
layer = open(f"{folder}/layer.tar", "rb").read()
digest = hashlib.sha256(layer).hexdigest()
config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["sleep", "600"]},
                     "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
name = hashlib.sha256(config).hexdigest() + ".json"
manifest = [{"Config": name, "RepoTags": ["example.org/trial/busy:1"], "Layers": ["layer.tar"]}]
with tarfile.open(f"{folder}/image.tar", "w") as image:
    for path, data in [(name, config), ("layer.tar", layer), ("manifest.json", json.dumps(manifest).encode())]:
        entry = tarfile.TarInfo(path)
        entry.size = len(data)
        image.addfile(entry, io.BytesIO(data))
PY
image=example.org/trial/busy:1
mark=(--env "SYMBIONT_TRIAL=$dir")
limits=(--ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "${mark[@]}")

cat >"$dir/rules/50-trial.toml" <<'RULES'
[[rule]]
pod = "shop/web-*"
class = "latency"
[[rule]]
label = { app = "trial-label" }
class = "batch"
[[rule]]
container = "trial-by-name"
class = "batch"
[[rule]]
command = "sleep 54321"
class = "batch"
[[rule]]
comm = "trial-comm"
class = "batch"
RULES
# An annotation asks for `latency`; the rule counts more.
printf '[[rule]]\ncontainer = "trial-outranked"\nclass = "batch"\n' >"$dir/rules/60-rank.toml"
cat >"$dir/symbiontd.toml" <<CONFIG
[containers]
annotations = true
[containers.folders]
containerd = ["$dir/ctrd"]
docker = ["$dir/docker/containers"]
storage = ["$dir/podman"]
runc = ["$dir/runc"]
crun = ["$dir/crun"]
CONFIG
# In sessions of their own, servers get no interrupt of this terminal: they are ended after what they started.
setsid "$symbiont" daemon --config "$dir/symbiontd.toml" --rules "$dir/rules" --state-dir "$dir/state" \
    >"$dir/daemon.log" 2>&1 &
daemon=$!
undo+=("kill $daemon; wait $daemon")
for _ in {1..100}; do "$symbiont" status --state-dir "$dir/state" >/dev/null 2>&1 && break; sleep 0.1; done

# The class of a program, or nothing.
class_of() {
    "$symbiont" status --json --state-dir "$dir/state" | python3 -c '
import json, sys
print(*{program["class"] for program in json.load(sys.stdin)["programs"] if program["name"] == sys.argv[1]})' "$1"
}
# Waits until a program has this class; an empty one: until it is gone.
expect() {
    local found=
    for _ in {1..60}; do
        found=$(class_of "$1")
        [ "$found" = "$2" ] && { echo "   $1: ${2:-released}"; return; }
        sleep 0.25
    done
    fail "$1 has the class '$found', not '$2'"
}

# Waits until the program of a process has this class and is in this container of this runtime and image.
expect_process() {
    local found=
    for _ in {1..60}; do
        found=$("$symbiont" status --json --state-dir "$dir/state" | python3 -c '
import json, sys
for program in json.load(sys.stdin)["programs"]:
    if int(sys.argv[1]) in program["roots"]:
        of = program.get("container") or {}
        print(program["class"], of.get("container"), of.get("runtime"), of.get("image"))' "$1")
        [ "$found" = "$2" ] && { echo "   $kind: ${2:-released}"; return; }
        sleep 0.25
    done
    fail "process $1 is '$found', not '$2'"
}

# OCI runtimes with a bundle that is annotated as Kubernetes does it.
oci() {
    local runtime=$1 pod=$2 bundle=$dir/bundle-$1
    has "$runtime" || { row "$runtime" "not installed"; return; }
    mkdir -p "$bundle"
    (cd "$bundle" && "$runtime" spec)
    python3 - "$bundle/config.json" "$dir/rootfs" "$pod" "SYMBIONT_TRIAL=$dir" <<'PY'
import json, sys
path, rootfs, pod, mark = sys.argv[1:]
config = json.load(open(path))
config["process"]["env"].append(mark)
config["process"].update(terminal=False, args=["sh", "-c", "while :; do sleep 0.05; done"], rlimits=[])
config["root"]["path"] = rootfs
kind = "io.kubernetes.cri."
config["annotations"] = {kind + "sandbox-name": pod, kind + "sandbox-namespace": "shop",
                         kind + "container-name": "main", kind + "image-name": "example.org/trial/busy:1"}
json.dump(config, open(path, "w"))
PY
    local start=()
    # crun refuses hybrid cgroups: it sees those of version 1 alone.
    [ "$runtime:$(stat -fc %T /sys/fs/cgroup/unified 2>/dev/null)" != crun:cgroup2fs ] ||
        start=(unshare -m sh -c 'umount -l /sys/fs/cgroup/unified; exec "$@"' sh)
    undo+=("${start[*]@Q} $runtime --root $dir/$runtime delete -f trial-$runtime")
    if ! (cd "$bundle" && "${start[@]}" timeout 20 "$runtime" --root "$dir/$runtime" run -d "trial-$runtime" \
        </dev/null) >"$dir/$runtime.log" 2>&1; then
        row "$runtime" "did not run: $(why "$dir/$runtime.log")"
        return
    fi
    row "$runtime" "ran"
    expect "shop/$pod/main" latency
}
oci runc web-0
oci crun web-1

if has containerd && has ctr; then
    setsid containerd --root "$dir/ctrd-root" --state "$dir/ctrd" --address "$dir/ctrd.sock" \
        >"$dir/containerd.log" 2>&1 &
    containerd=$!
    undo+=("kill $containerd; wait $containerd")
    ctr=(ctr -a "$dir/ctrd.sock")
    for _ in {1..50}; do [ -S "$dir/ctrd.sock" ] && break; sleep 0.1; done
    undo+=("${ctr[*]} task kill -s KILL trial-ctr; sleep 0.5; ${ctr[*]} task delete trial-ctr; \
        ${ctr[*]} container delete trial-ctr")
    if "${ctr[@]}" image import "$dir/image.tar" >"$dir/ctr.log" 2>&1 &&
        "${ctr[@]}" run -d "${mark[@]}" --label app=trial-label "$image" trial-ctr sleep 600 >>"$dir/ctr.log" 2>&1; then
        row containerd "ran"
        expect oci/trial-ctr batch
    else
        row containerd "did not run: $(why "$dir/ctr.log")"
    fi
else
    row containerd "not installed"
fi

if has podman && has runc; then
    podman=(podman --root "$dir/podman" --runroot "$dir/podrun" --tmpdir "$dir/podtmp" --runtime runc
        --cgroup-manager cgroupfs --storage-driver vfs)
    run=(run -d "${limits[@]}" --network none)
    undo+=("${podman[*]} rm -fa -t 0")
    if "${podman[@]}" load -i "$dir/image.tar" >"$dir/podman.log" 2>&1 &&
        "${podman[@]}" "${run[@]}" --name trial-by-name "$image" sleep 600 >>"$dir/podman.log" 2>&1; then
        row podman "ran"
        expect trial-by-name batch
        "${podman[@]}" "${run[@]}" --name trial-asks --annotation symbiont.dev/class=batch "$image" sleep 600 \
            >/dev/null
        expect trial-asks batch
        "${podman[@]}" "${run[@]}" --name trial-outranked --annotation symbiont.dev/class=latency "$image" sleep 600 \
            >/dev/null
        expect trial-outranked batch
        "${podman[@]}" "${run[@]}" --name trial-in-pod --annotation io.kubernetes.pod.name=web-2 \
            --annotation io.kubernetes.pod.namespace=shop "$image" sleep 600 >/dev/null
        expect shop/web-2/trial-in-pod latency
        "${podman[@]}" rm -f -t 0 trial-by-name >/dev/null
        expect trial-by-name ""
    else
        row podman "did not run: $(why "$dir/podman.log")"
    fi
else
    row podman "not installed"
fi

# A user's own podman, without a rule by pod: `podman pod create` keeps names in no file.
rootless() {
    local made hierarchy above # uid is that of later, too
    has podman && has runc && has newuidmap || { row "podman, rootless" "not installed, or no uidmap"; return; }
    if [ -z "$user" ]; then
        user=containers-trial-$$
        undo+=("userdel --remove $user")
        useradd --create-home --shell /bin/sh "$user" >"$dir/useradd.log" 2>&1 ||
            { row "podman, rootless" "no user: $(why "$dir/useradd.log")"; return; }
        uid=$(id -u "$user")
        undo+=("ps -o pid= -u $uid | xargs -r kill -KILL; sleep 0.5")
    fi
    uid=$(id -u "$user")
    if [ ! -d "/run/user/$uid" ]; then
        made=/run/user/$uid
        undo+=("umount -l $made/netns; rm -rf $made")
        install -d -o "$user" -m 700 "$made"
    fi
    as() { su "$user" -s /bin/sh -c "cd /; XDG_RUNTIME_DIR=/run/user/$uid podman --runtime runc $*"; }
    undo+=("as rmi -f $image")
    as load -i "$dir/image.tar" >"$dir/rootless.log" 2>&1 ||
        { row "podman, rootless" "did not run: $(why "$dir/rootless.log")"; return; }
    hierarchy=/sys/fs/cgroup
    [ ! -d "$hierarchy/unified" ] || hierarchy=$hierarchy/unified
    above=user.slice/user-$uid.slice/user@$uid.service/user.slice
    row "podman, rootless" "ran"
    local kind id pid path rule options
    for kind in container image label cgroup unit executable command comm user annotation; do
        options="--name rootless-$kind"
        case $kind in
        label) options="$options --annotation app=rootless-label" ;;
        annotation) options="$options --annotation symbiont.dev/class=batch" ;;
        esac
        undo+=("as rm -f -t 0 rootless-$kind")
        id=$(as "run -d ${limits[*]} --network none $options" "$image" sleep 6543 2>>"$dir/rootless.log" | tail -n1) ||
            { fail "rootless-$kind did not start: $(why "$dir/rootless.log")"; continue; }
        pid=$(as "inspect -f '{{.State.Pid}}' rootless-$kind")
        if ! grep -q "libpod-$id" "/proc/$pid/cgroup"; then
            # Without systemd it gets no cgroup of its own: here is the one that systemd would make.
            undo+=("kill -KILL $pid; sleep 0.5; cd '$hierarchy' && rmdir -p '$above/libpod-$id.scope'; cd -")
            mkdir -p "$hierarchy/$above/libpod-$id.scope"
            echo "$pid" >"$hierarchy/$above/libpod-$id.scope/cgroup.procs"
        fi
        path=$(grep -o "/.*libpod-$id.*" "/proc/$pid/cgroup" | head -n1)
        case $kind in
        container) rule='container = "rootless-*"' ;;
        image) rule='image = "example.org/trial/*"' ;;
        label) rule='label = { app = "rootless-label" }' ;;
        cgroup) rule="cgroup = \"$path\"" ;;
        unit) rule="unit = \"libpod-$id.scope\"" ;;
        executable) rule='executable = "busybox"' ;;
        command) rule='command = "sleep 6543"' ;;
        comm) rule='comm = "sleep"' ;;
        user) rule='comm = "slee?"' ;;
        annotation) rule='container = "no such one"' ;;
        esac
        printf '[[rule]]\n%s\nuser = "%s"\nclass = "batch"\n' "$rule" "$user" >"$dir/rules/70-rootless.toml"
        "$symbiont" reload --state-dir "$dir/state" >/dev/null
        expect_process "$pid" "batch rootless-$kind podman $image"
        as "rm -f -t 0 rootless-$kind" >/dev/null
        expect_process "$pid" ""
    done
    rm -f "$dir/rules/70-rootless.toml"
    "$symbiont" reload --state-dir "$dir/state" >/dev/null
}
rootless

if has dockerd && has docker && has containerd; then
    setsid dockerd --iptables=false --ip6tables=false --bridge=none --storage-driver=vfs --data-root "$dir/docker" \
        --exec-root "$dir/docker-run" -H "unix://$dir/docker.sock" --pidfile "$dir/docker.pid" \
        --containerd "$dir/ctrd.sock" >"$dir/dockerd.log" 2>&1 &
    dockerd=$!
    undo+=("kill $dockerd; wait $dockerd")
    docker=(docker -H "unix://$dir/docker.sock")
    for _ in {1..100}; do "${docker[@]}" version >/dev/null 2>&1 && break; sleep 0.1; done
    undo+=("${docker[*]} rm -f trial-docker")
    if "${docker[@]}" load -i "$dir/image.tar" >"$dir/docker.log" 2>&1 &&
        "${docker[@]}" run -d "${mark[@]}" --network none --name trial-docker --label app=trial-label "$image" \
            /bin/sleep 600 >>"$dir/docker.log" 2>&1; then
        row docker "ran"
        expect trial-docker batch
        "${docker[@]}" rm -f trial-docker >/dev/null
        expect trial-docker ""
    else
        row docker "did not run: $(why "$dir/docker.log")"
    fi
else
    row docker "not installed"
fi

row "no container" "ran"
sleep 54321 &
undo+=("kill $!")
expect sleep batch
cp "$dir/rootfs/bin/busybox" "$dir/trial-comm"
# Busybox is what its first word says; its short name is that of the file.
(exec -a sleep "$dir/trial-comm" 300) &
undo+=("kill $!")
expect trial-comm batch
# The path that a rule matches is the one that `attach` takes.
cgroup=/sys/fs/cgroup/cpu/containers-trial
[ -d /sys/fs/cgroup/cpu ] || cgroup=/sys/fs/cgroup/containers-trial
if mkdir "$cgroup" 2>/dev/null; then
    sleep 300 &
    member=$!
    echo "$member" >"$cgroup/cgroup.procs"
    undo+=("rmdir $cgroup" "kill $member; wait $member")
    "$symbiont" attach --cgroup /containers-trial --name trial-attach --state-dir "$dir/state" >/dev/null ||
        fail "attach finds no cgroup /containers-trial"
    expect trial-attach normal
fi

row "end of the daemon" "masks as before"
pids=$("$symbiont" status --json --state-dir "$dir/state" | python3 -c '
import json, sys
print(*(pid for program in json.load(sys.stdin)["programs"] for pid in program["roots"]))')
kill "$daemon"
wait "$daemon" || fail "the daemon ended with $?"
own=$(taskset -pc $$ | sed 's/.*: //')
for pid in $pids; do
    [ -d "/proc/$pid" ] || continue
    mask=$(taskset -pc "$pid" | sed 's/.*: //')
    [ "$mask" = "$own" ] || fail "process $pid keeps the mask $mask"
done
echo "   $(wc -w <<<"$pids") processes have all CPUs of this shell: $own"
"$symbiont" restore --state-dir "$dir/state" >"$dir/restore.log" 2>&1 || fail "restore: $(why "$dir/restore.log")"
grep -i "panic\|not restored" "$dir/daemon.log" && fail "the daemon's log"
[ "$failed" = 0 ] && echo "containers-trial: all is as it should be"
exit "$failed"
