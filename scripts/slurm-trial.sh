#!/bin/bash
# Brings up a Slurm controller and two nodes on this machine, runs 40 jobs of eight programs with and
# without Symbiont, kills daemon and releaser midway, and tears all down. Before that, jobs run past a plugin
# that was built for another Slurm.
#   scripts/slurm-trial.sh [SYMBIONT]       SYMBIONT: the binary, default target/release/symbiont
# Takes root and Debian's packages: slurmctld slurmd slurm-client slurm-wlm-basic-plugins libslurm-dev, and
# a C compiler. All files are in a temporary folder; ports 26817, 27001 and 27002 have to be free. Nothing
# of a Slurm that is set up here is touched.
set -euo pipefail
cd "$(dirname "$0")/.."
symbiont=$(realpath "${1:-target/release/symbiont}")
[ "$(id -u)" = 0 ] || { echo "slurm-trial: needs root, as slurmd does" >&2; exit 2; }
for command in slurmctld slurmd sbatch scontrol cc "$symbiont"; do
    command -v "$command" >/dev/null || { echo "slurm-trial: $command is missing" >&2; exit 2; }
done

dir=$(mktemp -d /tmp/slurm-trial.XXXXXX)
export SLURM_CONF=$dir/slurm.conf
pids=()
teardown() {
    # Jobs first, so that none outlives its slurmd.
    scancel --user=root --quiet 2>/dev/null || true
    sleep 1
    for file in "$dir"/*.pid; do
        [ -e "$file" ] && pids+=("$(cat "$file")")
    done
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do
        for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$pid" 2>/dev/null || true
    done
    if [ "${failed:-1}" = 0 ]; then rm -rf "$dir"; else echo "slurm-trial: logs are in $dir" >&2; fi
}
trap teardown EXIT
fail() { echo "slurm-trial: FAILED: $*" >&2; exit 1; }
note() { echo "== $*"; }

most_wait=90
mkdir -p "$dir"/{ctld,n1,n2,state,out,in}
make -s -C slurm
cat >"$dir/slurm.conf" <<END
ClusterName=trial
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort=26817
StateSaveLocation=$dir/ctld
SlurmctldPidFile=$dir/ctld.pid
SlurmctldLogFile=$dir/ctld.log
SlurmdSpoolDir=$dir/%n
SlurmdPidFile=$dir/%n.pid
SlurmdLogFile=$dir/%n.log
SlurmdDebug=verbose
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobSubmitPlugins=lua
PlugStackConfig=$dir/plugstack.conf
MpiDefault=none
MinJobAge=600
SchedulerParameters=sched_interval=2,batch_sched_delay=0
NodeName=n1 NodeHostname=localhost Port=27001 CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname=localhost Port=27002 CPUs=2 RealMemory=1000
PartitionName=symbiont Nodes=n1,n2 MaxTime=60 State=UP
PartitionName=plain Nodes=n1,n2 Default=YES MaxTime=60 State=UP
END
sed "s/^local MOST_WAIT = .*/local MOST_WAIT = $most_wait/" slurm/job_submit.lua >"$dir/job_submit.lua"

load() { echo "optional $1 socket=$dir/state/symbiontd.sock" >"$dir/plugstack.conf"; }
# As after an upgrade of Slurm: the plugin was built for another one.
other=$dir/other
mkdir -p "$other/include"
cp -r /usr/include/slurm "$other/include"
sed -i 's/\(define SLURM_VERSION_NUMBER\) 0x.*/\1 0x630100/' "$other/include/slurm/slurm_version.h"
cp slurm/Makefile slurm/symbiont_spank.c "$other"
make -s -C "$other" SLURM="$other"
load "$other/symbiont_spank.so"

start_daemon() {
    "$symbiont" daemon --state-dir "$dir/state" >"$dir/daemon.log" 2>&1 &
    daemon=$!
    pids+=("$daemon")
    for _ in {1..100}; do [ -S "$dir/state/symbiontd.sock" ] && return; sleep 0.1; done
    fail "symbiontd does not listen: $(tail -1 "$dir/daemon.log")"
}
start_releaser() {
    "$symbiont" slurm --partition symbiont --interval 1s --ahead 1 --max-wait 60s --store "$dir/jobs.json" \
        --metrics "$dir/symbiont.prom" "$@" >>"$dir/releaser.log" 2>&1 &
    releaser=$!
    pids+=("$releaser")
}
stop() { kill "-$2" "$1"; wait "$1" 2>/dev/null || true; }

note "controller and nodes: Slurm $(slurmctld -V | cut -d' ' -f2)"
slurmctld
slurmd -N n1
slurmd -N n2
for _ in {1..100}; do [ "$(sinfo -h -o %t -p plain 2>/dev/null)" = idle ] && break; sleep 0.2; done
[ "$(sinfo -h -o %t -p plain)" = idle ] || fail "the nodes do not come up: $(sinfo -h)"

note "the plugin was built for another Slurm: jobs run without it, and end with their own status"
status=0
SLURM_SPANK__SLURM_SPANK_OPTION_symbiont_symbiont=batch srun -p plain sh -c 'exit 7' 2>"$dir/srun.log" || status=$?
[ $status = 7 ] || fail "srun ended with $status, not 7: $(cat "$dir/srun.log")"
status=0
sbatch --quiet --wait -p plain -o /dev/null --wrap 'exit 3' 2>"$dir/sbatch.log" || status=$?
[ $status = 3 ] || fail "sbatch ended with $status, not 3: $(cat "$dir/sbatch.log")"
grep -h '\] \[1\.0\] spank: .*Failed to load optional plugin.*Ignored' "$dir"/n?.log ||
    fail "slurmd does not say that it left out the plugin"
said=$("$symbiont" doctor | tr -s ' \n' ' ')
grep -o "$other/symbiont_spank.so was built for Slurm 99.01, .* install && cp .* $other/[^ ]*\` builds it anew" \
    <<<"$said" ||
    fail "doctor does not name the plugin of another version"
load "$PWD/slurm/symbiont_spank.so"

# Inputs of about a second each.
seq 900000 >"$dir/in/numbers"
head -c 5000000 /dev/urandom | od -An -tx1 >"$dir/in/hex"
programs=(
    "gzip -9 -c $dir/in/hex"
    "bzip2 -c $dir/in/hex"
    "xz -2 -c $dir/in/hex"
    "sort -R $dir/in/numbers"
    "awk {s+=sqrt(\$1)*log(\$1+1)}END{print(s)} $dir/in/numbers $dir/in/numbers"
    "perl -e for(1..6e6){\$s+=\$_%7*\$_}print(\$s)"
    "factor 18446744073709551557 340282366920938463426481119284349108225"
    "sha512sum $(printf "$dir/in/hex %.0s" {1..20})"
)

# Job i of a pass runs program i modulo 8. All but the first and the last of each program end with a status
# of their own.
status_of() { echo $(($1 / 8 % 4)); }
submit() { # PARTITION COUNT
    ids=()
    for ((i = 0; i < $2; i++)); do
        # Quoted word by word: no shell looks into the programs' own.
        read -ra words <<<"${programs[i % 8]}"
        printf '#!/bin/sh\n%s >/dev/null\n' "$(printf '%q ' "${words[@]}")" >"$dir/in/job.sh"
        [ "$(status_of $i)" = 0 ] || echo "exit $(status_of $i)" >>"$dir/in/job.sh"
        ids+=("$(sbatch --parsable -p "$1" -J "p$((i % 8))" -o "$dir/out/%j" "$dir/in/job.sh")")
    done
}
await() { # SECONDS
    local end=$((SECONDS + $1))
    while [ -n "$(squeue -h -o %i)" ]; do
        [ $SECONDS -lt $end ] || fail "jobs do not end: $(squeue -h -o '%i %P %T %r' | head -3)"
        sleep 0.2
    done
}
# Each job has ended with its own status; prints the makespan and the longest wait.
check() { # NAME
    local i=0 first=0 last=0 longest=0 field
    for id in "${ids[@]}"; do
        local state
        state=$(SLURM_TIME_FORMAT=%s scontrol -o show job "$id")
        field() { sed -E "s/.* $1=([^ ]*).*/\1/" <<<"$state"; }
        [ "$(field ExitCode)" = "$(status_of $i):0" ] ||
            fail "$1: job $id ended with $(field ExitCode), not $(status_of $i):0"
        local submitted started ended
        submitted=$(field SubmitTime) started=$(field StartTime) ended=$(field EndTime)
        [ $first -ne 0 ] && [ $first -le "$submitted" ] || first=$submitted
        [ $last -ge "$ended" ] || last=$ended
        [ $longest -ge $((started - submitted)) ] || longest=$((started - submitted))
        i=$((i + 1))
    done
    [ $longest -le $((most_wait + 30)) ] || fail "$1: a job waited for $longest s"
    note "$1: ${#ids[@]} jobs ended with their own status; makespan $((last - first)) s, longest wait $longest s"
}

note "without Symbiont: 40 jobs of eight programs"
submit plain 40
await 600
check "without Symbiont"

start_daemon
start_releaser
for pass in "first pass, programs not known" "second pass, programs known"; do
    submit symbiont 40
    if [[ $pass = second* ]]; then
        sleep 3
        "$symbiont" status --state-dir "$dir/state" | grep -q "job " || fail "the daemon manages no job"
        waiting=$(squeue -h -t PD -o %i | tail -1)
        [ -z "$waiting" ] || "$symbiont" slurm why "$waiting" --store "$dir/jobs.json"
    fi
    await 600
    check "with Symbiont, $pass"
done
"$symbiont" slurm why "${ids[39]}" --store "$dir/jobs.json" || fail "the choice is not explained"
partners=$(grep -c "it suits what runs there" "$dir/releaser.log" || true)
note "releases that preferred a partner: $partners; $(grep -v '^#' "$dir/symbiont.prom" | tr '\n' ' ')"

note "a node is kept for a job of two CPUs, and filled by a job that ends in time"
stop "$releaser" TERM
held() { sbatch --parsable -o /dev/null --wrap "sleep 30" "$@"; }
for node in 1 2; do held -p plain -w "n$node" --time=$((node + 1)) >/dev/null; done
for _ in {1..100}; do [ "$(squeue -h -t R -o %i | wc -l)" = 2 ] && break; sleep 0.1; done
wide=$(held -p symbiont -c 2 --time=1)
long=$(held -p symbiont --time=30)
held -p symbiont --time=30 >/dev/null
short=$(held -p symbiont --time=1)
"$symbiont" slurm --partition symbiont --once --dry-run --store "$dir/jobs.json" | tee "$dir/kept.log"
[ "$(wc -l <"$dir/kept.log")" = 3 ] || fail "other jobs start, or none"
grep -q "n1 is kept for job $wide " "$dir/kept.log" || fail "no node is kept"
grep -q "job $long .* released to n2 " "$dir/kept.log" || fail "a job that delays none does not start"
grep -q "job $short .* released to n1 .*by the time limits job $wide" "$dir/kept.log" || fail "the node is not filled"
scancel --user=root --quiet
await 60
start_releaser

note "the daemon manages a job as its user's, and delays none while it hangs"
srun -p plain --uid=65534 --symbiont=batch sleep 3 &
sleep 1.5
"$symbiont" status --state-dir "$dir/state" --json >"$dir/status.json"
wait $!
grep -A8 '"name": "sleep"' "$dir/status.json" | grep -q '"uid": 65534' || fail "the job of user 65534 is not its own"
grep -A8 '"name": "sleep"' "$dir/status.json" | grep -q '"class": "batch"' || fail "the class is lost"
kill -STOP "$daemon"
begin=$(date +%s%N)
srun -p plain true
took=$((($(date +%s%N) - begin) / 1000000))
kill -CONT "$daemon"
note "a task waited for the stopped daemon: srun took $took ms"
[ $took -lt 2000 ] || fail "a job waits for the daemon"

note "the daemon is killed midway"
submit symbiont 8
sleep 2
stop "$daemon" KILL
await 300
check "daemon killed"

note "the releaser is killed midway: what waits starts by time"
submit symbiont 12
sleep 2
stop "$releaser" KILL
waiting=$(squeue -h -t PD -o %i | wc -l)
[ "$waiting" -gt 0 ] || fail "no job was waiting when the releaser was killed"
await 300
check "releaser killed with $waiting jobs waiting"

note "bad input"
expect() { # WORDS COMMAND...
    local words=$1 said
    shift
    if said=$("$@" 2>&1); then fail "$* succeeded"; fi
    grep -q "$words" <<<"$said" || fail "$*: $said"
    [ "$(wc -l <<<"$said")" -le 2 ] || fail "$*: more than a line: $said"
    echo "   $(head -1 <<<"$said")"
}
expect "no partition 'nope'" "$symbiont" slurm --partition nope --once --store "$dir/jobs.json"
expect "no such class" srun --symbiont=nope true
expect "not in the queue" "$symbiont" slurm why 4294967 --store "$dir/jobs.json"
kill "$(cat "$dir/ctld.pid")"
sleep 2
expect "ontact" "$symbiont" slurm --once --store "$dir/jobs.json"

failed=0
note "all as it should be"
