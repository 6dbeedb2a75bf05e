#!/bin/sh
# lscpu (util-linux) gives two different cores the same number in its parsable output.
#
# Guess: in `lscpu -p=CPU,CORE,SOCKET`, made for programs to read, CPUs with the same socket and core share a core;
# its own header says that each different item of a column has a unique number.
#
# Found, in 2.38.1 (and in 2.41.5): cores and sockets are numbered anew for each model of processor. On an Arm machine of two
# Cortex-A510 and two Cortex-A710, each a core of its own by core_id, the CPUs 0, 1, 2, 3 get the cores 0, 1, 0, 1 of
# socket 0: read as the header says, two cores of two threads. The same call with -y (physical numbers) gives 0, 1, 2, 3, and
# the summary says one thread per core, two cores per socket, one socket: for each model. So a program that pairs the threads of cores
# by these columns pairs cores of different kinds.
#
# Runs Debian's package in a temporary folder on a copy of /sys and /proc/cpuinfo as such a machine has them. Fails if any of
# that changes. Needs dpkg-deb, curl, x86-64. DEBIAN_MIRROR: where packages come from.
set -eu
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
version=2.38.1-5+deb12u3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for package in util-linux libsmartcols1; do
    curl -fsSL -o "$folder/$package.deb" "$mirror/pool/main/u/util-linux/${package}_${version}_amd64.deb"
    dpkg-deb -x "$folder/$package.deb" "$folder/root"
done
lscpu() { LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu:$folder/root/lib/x86_64-linux-gnu "$folder/root/usr/bin/lscpu" "$@"; }
lscpu --version | grep -q ' 2\.38\.1$' || { echo "another version: $(lscpu --version)"; exit 1; }

machine=$folder/machine
cpus=$machine/sys/devices/system/cpu
mkdir -p "$machine/proc" "$cpus"
for list in online possible present; do echo 0-3 >"$cpus/$list"; done
echo 255 >"$cpus/kernel_max"
for cpu in 0 1 2 3; do
    part=0xd46
    [ "$cpu" -lt 2 ] || part=0xd47
    printf 'processor\t: %s\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\n' "$cpu"
    printf 'CPU variant\t: 0x1\nCPU part\t: %s\nCPU revision\t: 0\n\n' "$part"
    topology=$cpus/cpu$cpu/topology
    mkdir -p "$topology"
    echo "$cpu" | tee "$topology/core_id" "$topology/core_cpus_list" >"$topology/thread_siblings_list"
    printf '%x\n' $((1 << cpu)) | tee "$topology/core_cpus" >"$topology/thread_siblings"
    echo 0 >"$topology/physical_package_id"
    echo 0-3 >"$topology/core_siblings_list"
    echo f | tee "$topology/package_cpus" >"$topology/core_siblings"
done >"$machine/proc/cpuinfo"

said=$(lscpu --sysroot "$machine" -p=CPU,CORE,SOCKET)
echo "$said"
promised=$(echo "$said" | grep -c 'unique ID') || true
logical=$(echo "$said" | grep -v '^#' | tr '\n' ' ')
physical=$(lscpu --sysroot "$machine" -y -p=CPU,CORE,SOCKET | grep -v '^#' | tr '\n' ' ')
echo "logical: $logical physical: $physical"
[ "$promised" = 1 ] && [ "$logical" = "0,0,0 1,1,0 2,0,0 3,1,0 " ] && [ "$physical" = "0,0,0 1,1,0 2,2,0 3,3,0 " ] || {
    echo "lscpu behaves otherwise than described here"
    exit 1
}
echo "as described: four cores, and two numbers for them"
