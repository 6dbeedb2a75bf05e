#!/bin/bash
# Does `symbiont slurm` harm a job? Jobs of all kinds on nodes that differ, with a real controller of a Debian of its
# own, while the releaser is killed and stopped at random moments: scripts/slurm-harm.py says what must not happen.
#   scripts/slurm-harm.sh [SUITE [JOBS [SEED]]]    SUITE: Debian's release [bookworm]; JOBS [300]; SEED [1]
# Takes root and debootstrap. Of the environment: DEBIAN_MIRROR; SYMBIONT: the binary [target/release/symbiont]. The
# Debian is kept in ~/.cache/symbiont-deb and copied for each run; Slurm has a network of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-bookworm} jobs=${2:-300} seed=${3:-1} most_wait=90
symbiont=$(realpath "${SYMBIONT:-target/release/symbiont}")
base=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-deb/$suite-controller
[ "$(id -u)" = 0 ] || { echo "slurm-harm: a chroot takes root" >&2; exit 2; }
for command in debootstrap ip "$symbiont"; do
    command -v "$command" >/dev/null || { echo "slurm-harm: $command is missing" >&2; exit 2; }
done
if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins,python3,procps \
        "$suite" "$base/root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$base/log" 2>&1 ||
        { tail -n 5 "$base/log" >&2; exit 1; }
    touch "$base/complete"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a "$base/root" "$work/root"
root=$work/root
mkdir -p "$root"/{sys,etc/slurm,var/spool/s,run/s,tmp/harm}
cp "$symbiont" "$root/root/symbiont"
cp scripts/slurm-harm.py "$root/root"
echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
sed -e "s/^local MOST_WAIT = .*/local MOST_WAIT = $most_wait/" \
    -e "s/^local PARTITIONS = .*/local PARTITIONS = { symbiont = true, wide = true, whole = true }/" \
    slurm/job_submit.lua >"$root/etc/slurm/job_submit.lua"
echo "NodeName=n2 Name=tok Count=2" >"$root/etc/slurm/gres.conf"
# Newer releases need no cgroups; 22.05 takes those of this machine.
[ "$suite" = bookworm ] || echo CgroupPlugin=disabled >"$root/etc/slurm/cgroup.conf"
cat >"$root/etc/slurm/slurm.conf" <<CONF
ClusterName=harm
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=/var/spool/s/ctld
SlurmctldPidFile=/run/s/ctld.pid
SlurmctldLogFile=/var/spool/s/ctld.log
SlurmdSpoolDir=/var/spool/s/%n
SlurmdPidFile=/run/s/%n.pid
SlurmdLogFile=/var/spool/s/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobSubmitPlugins=lua
MpiDefault=none
MinJobAge=3600
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=0
GresTypes=tok
Licenses=lic:2
DefMemPerCPU=100
NodeName=n1 NodeHostname=localhost Port=27001 CPUs=2 RealMemory=1000 Feature=fast TmpDisk=10
NodeName=n2 NodeHostname=localhost Port=27002 CPUs=4 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=2000 Feature=slow Gres=tok:2 TmpDisk=10
NodeName=n3 NodeHostname=localhost Port=27003 CPUs=4 Sockets=1 CoresPerSocket=4 RealMemory=4000 Feature=fast,big TmpDisk=10
NodeName=n4 NodeHostname=localhost Port=27004 CPUs=4 Sockets=1 CoresPerSocket=4 CoreSpecCount=1 RealMemory=2000 Feature=slow TmpDisk=10
PartitionName=symbiont Nodes=n1,n2,n3 MaxTime=60 State=UP
PartitionName=wide Nodes=n3,n4 MaxTime=60 State=UP
PartitionName=whole Nodes=n1,n4 MaxTime=60 State=UP OverSubscribe=EXCLUSIVE
PartitionName=plain Nodes=ALL Default=YES MaxTime=60 State=UP
CONF
cat >"$root/root/inside.sh" <<'INSIDE'
set -eu
mkdir -p /var/spool/s/{ctld,n1,n2,n3,n4}
echo "Slurm $(slurmctld -V | cut -d' ' -f2)"
slurmctld
for node in n1 n2 n3 n4; do slurmd -N $node; done
for _ in {1..100}; do [ "$(sinfo -h -o %t -p plain)" = idle ] && break; sleep 0.2; done
[ "$(sinfo -h -o %t -p plain)" = idle ] || { sinfo >&2; exit 1; }
python3 /root/slurm-harm.py /root/symbiont /tmp/harm "$@"
INSIDE
# Slurm looks up no name where there is an address of loopback alone.
unshare --mount --pid --net --fork --kill-child bash -euc '
    root=$1
    shift
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
    for node in null zero urandom; do touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"; done
    ip link set lo up
    ip address add 192.0.2.1/24 dev lo
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" bash /root/inside.sh "$@"
' sh "$root" "$most_wait" "$jobs" "$seed" || { grep -h error "$root"/var/spool/s/*.log | tail -n 5 >&2; exit 1; }
echo "slurm-harm: $suite: no job is harmed"
