#!/bin/sh
# Repeats what once left threads changed or programs unmanaged, and counts what is left.
#   scripts/soak-faults.sh [RUNS [SYMBIONT [LOOP...]]]    by default 200 target/release/symbiont
# Prints a line for each loop, which all go on at once; ends with 1 unless every count is 0. Takes
# less than ten minutes with 200 runs. Needs cc. The loops are non_leader, back_to_back, killed and
# setuid; the last one needs root, to be an ordinary user. By default all that can run.
#   narrowed    threads that keep a mask that was not the user's
#   unmanaged   runs that were not managed
#   journals    runs after which a journal was left
#   untested    runs in which what is to be repeated did not come about
set -eu
cd "$(dirname "$0")/.."
runs=${1:-200}
symbiont=$(realpath "${2:-target/release/symbiont}")
[ -x "$symbiont" ] || { echo "no $symbiont: make it, or name another one" >&2; exit 2; }
[ $# -le 2 ] && shift $# || shift 2
loops=$*
if [ -z "$loops" ]; then
    loops="non_leader back_to_back killed"
    if [ "$(id -u)" = 0 ]; then
        loops="$loops setuid"
    else
        echo "setuid children of an ordinary user: skipped, needs root"
    fi
fi

work=$(mktemp -d)
# Processes of this script alone have its folder among their words.
cleanup() {
    for process in $(users); do
        kill -KILL "$process" 2>/dev/null || :
    done
    rm -rf "$work"
}
users() { with_words "$work/"; }
with_words() { grep -alF "$1" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3; }
trap cleanup EXIT
trap 'exit 130' INT TERM
chmod 755 "$work"
cp "$symbiont" "$work/symbiont"
cp "$(command -v sleep)" "$work/sleeper"
cc -O1 -pthread -o "$work/program" scripts/soak-faults.c

mask() { # mask PROCESS
    sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null || :
}
own=$(mask $$)

# Waits until the words hold, for ten seconds at most.
until_holds() {
    tries=1000
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.01
    done
}
comes_about() { # comes_about WHAT_IF_NOT CONDITION...
    why_not=$1
    shift
    until_holds "$@" || { echo "$why_not" >&2; untested=$((untested + 1)); }
}
is_gone() { [ ! -d "/proc/$1" ]; }
has_become() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]; }
is_moved() { [ "$(mask "$1")" != "$own" ]; }

# Processes of this name with these words.
named() { # named NAME WORDS
    for process in $(with_words "$2"); do
        ! has_become "$process" "$1" || echo "$process"
    done
}
# The manager of a state directory: it keeps the words of the command line.
manager() { named symbiont "$1"; }
end_manager() { # end_manager SIGNAL STATE
    for process in $(manager "$2"); do
        kill "-$1" "$process" 2>/dev/null || :
        until_holds is_gone "$process" || echo "manager $process does not end" >&2
    done
}
journals() {
    find "$1" -name '*journal-*' 2>/dev/null | wc -l
}

# count STATE SAID PROCESS...: what a run left
count() {
    state=$1 said=$2
    shift 2
    for process in "$@"; do
        now=$(mask "$process")
        [ -z "$now" ] || [ "$now" = "$own" ] || narrowed=$((narrowed + 1))
    done
    ! grep -q unmanaged "$said" || unmanaged=$((unmanaged + 1))
    [ "$(journals "$state")" = 0 ] || left=$((left + 1))
}
loop() { # loop NAME FUNCTION
    narrowed=0 unmanaged=0 left=0 untested=0 by_root=0 run=0 begin=$(date +%s)
    while [ "$run" -lt "$runs" ]; do
        run=$((run + 1))
        mkdir "$work/$2-$run"
        "$2" "$work/$2-$run"
    done
    took=$(($(date +%s) - begin))
    echo "$1: $runs runs in $took s: $narrowed narrowed, $unmanaged unmanaged, $left journals left, $untested untested"
    [ "$by_root" = 0 ] || echo "    of which $by_root needed a restore by root, as was told"
    echo $((narrowed + unmanaged + left + untested)) >>"$work/faults"
}

# A thread that does not lead its process executes another program.
non_leader() {
    "$work/symbiont" run --state-dir "$1/state" --policy random --quantum 2ms -- \
        "$work/program" exec $((300 + run % 7)) "$work/sleeper" 1000 2>"$1/said" &
    program=$!
    comes_about "$program executes nothing" has_become "$program" sleeper
    end_manager TERM "$1/state"
    count "$1/state" "$1/said" "$program"
    kill -KILL "$program"
    wait "$program" 2>/dev/null || :
}

# An ordinary user's program starts programs that become root.
setuid() {
    chown "$user" "$1"
    setpriv --reuid "$user" --regid "$user" --clear-groups \
        "$work/symbiont" run --state-dir "$1/state" --policy random --quantum 2ms -- \
        "$work/program" spawn $((260 + run % 7)) 2 \
        "$work/as-root" --reuid 0 --clear-groups "$work/root-sleeper" 1000 2>"$1/said" &
    program=$!
    comes_about "no two children of $program sleep" both_sleep
    children=$(named root-sleeper "$work/root-sleeper")
    end_manager TERM "$1/state"
    # What the user's manager could not undo it left to root.
    if [ "$(journals "$1/state")" != 0 ]; then
        by_root=$((by_root + 1))
        "$work/symbiont" restore --state-dir "$1/state" >>"$1/said" 2>&1 || echo "restore fails" >&2
    fi
    # shellcheck disable=SC2086 # numbers
    count "$1/state" "$1/said" "$program" $children
    # shellcheck disable=SC2086
    [ -z "$children" ] || kill -KILL $children
    wait "$program" 2>/dev/null || :
}
both_sleep() { [ "$(named root-sleeper "$work/root-sleeper" | wc -l)" = 2 ]; }

# One run right after the other, each shorter than its quantum.
back_to_back() {
    "$work/symbiont" run --state-dir "$work/successive" --policy never-twice --quantum 1s -- \
        sleep 0.05 2>"$1/said"
    count "$work/none" "$1/said"
}

# The manager is killed while something is changed: its masks stay narrow, so that this can be seen.
killed() {
    "$work/symbiont" run --state-dir "$1/state" --policy random --quantum 5ms --narrow always -- \
        "$work/program" exec 100000 none 2>"$1/said" &
    program=$!
    comes_about "$program is not moved" is_moved "$program"
    end_manager KILL "$1/state"
    "$work/symbiont" restore --state-dir "$1/state" >>"$1/said" 2>&1 || echo "restore fails" >&2
    count "$1/state" "$1/said" "$program"
    kill -KILL "$program"
    wait "$program" 2>/dev/null || :
}

case " $loops " in
*" setuid "*)
    user=61183
    cp "$work/sleeper" "$work/root-sleeper"
    cp "$(command -v setpriv)" "$work/as-root"
    chmod 4755 "$work/as-root"
    ;;
esac
begun=0
for name in $loops; do
    case $name in
    non_leader) says="exec by a thread that does not lead" ;;
    back_to_back) says="back-to-back runs at a quantum of 1 s" ;;
    killed) says="killed managers, then restore" ;;
    setuid) says="setuid children of an ordinary user" ;;
    *) echo "no loop is called $name" >&2 && exit 2 ;;
    esac
    loop "$says" "$name" &
    begun=$((begun + 1))
done
wait
faults=$(awk '{ sum += $1 } END { print sum + 0 }' "$work/faults")
ended=$(wc -l <"$work/faults")
echo "all loops: $faults faults"
[ "$ended" -eq "$begun" ] || echo "only $ended of $begun loops came to their end"
[ "$faults" -eq 0 ] && [ "$ended" -eq "$begun" ]
