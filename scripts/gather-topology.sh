#!/bin/sh
# Writes what this machine's /sys tells of its processors and memory nodes as
# one text file, for the golden corpus in crates/core/topology/tests/golden.
#
# usage: scripts/gather-topology.sh 'short description' > NAME.sys
#
# Each line is a path below /sys, a tab and the file's first line. Nothing else
# of the machine is read. ROOT=DIR reads DIR instead of /sys.
set -eu

cd "${ROOT:-/sys}"
printf '# machine: %s\n' "${1:-$(uname -m), Linux $(uname -r)}"

cpu=devices/system/cpu
node=devices/system/node
for file in \
    $cpu/online $cpu/offline $cpu/possible $cpu/present \
    $cpu/cpu[0-9]*/online $cpu/cpu[0-9]*/cpu_capacity $cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq \
    $cpu/cpu[0-9]*/topology/physical_package_id \
    $cpu/cpu[0-9]*/topology/die_id $cpu/cpu[0-9]*/topology/core_id \
    $cpu/cpu[0-9]*/topology/core_cpus $cpu/cpu[0-9]*/topology/core_cpus_list \
    $cpu/cpu[0-9]*/topology/thread_siblings $cpu/cpu[0-9]*/topology/thread_siblings_list \
    $cpu/cpu[0-9]*/topology/package_cpus $cpu/cpu[0-9]*/topology/package_cpus_list \
    $cpu/cpu[0-9]*/cache/index[0-9]*/level $cpu/cpu[0-9]*/cache/index[0-9]*/type \
    $cpu/cpu[0-9]*/cache/index[0-9]*/size \
    $cpu/cpu[0-9]*/cache/index[0-9]*/shared_cpu_list \
    $cpu/cpu[0-9]*/cache/index[0-9]*/shared_cpu_map \
    $node/online $node/node[0-9]*/cpulist $node/node[0-9]*/cpumap \
    $node/node[0-9]*/meminfo $node/node[0-9]*/distance \
    $node/possible $cpu/cpu[0-9]*/regs/identification/midr_el1 \
    devices/cpu_core/cpus devices/cpu_atom/cpus devices/cpu_lowpower/cpus; do
    if [ -f "$file" ] && [ -r "$file" ]; then
        printf '%s\n' "$file"
    fi
done | xargs awk 'FNR == 1 { print FILENAME "\t" $0 }'
