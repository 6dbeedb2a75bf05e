#!/bin/sh
# Runs CPython's own tests of processes, signals, threads and terminals alone and managed, and
# compares which of them fail: a managed program must not notice.
#   scripts/cpython-tests.sh [SYMBIONT]    by default target/release/symbiont
# Needs the test suite of Debian's python3 (libpython3.11-testsuite, …). Prints a line for each module and the number of moves; ends
# with 1 if a test fails managed only, if one was not managed, or if nothing was moved.
set -eu
cd "$(dirname "$0")/.."
symbiont=${1:-$PWD/target/release/symbiont}
python=/usr/bin/python3
modules=${MODULES:-test_posix test_os test_signal test_subprocess test_threading \
test_multiprocessing_fork test_pty}

[ -x "$symbiont" ] || { echo "no $symbiont: make it, or name another one" >&2; exit 2; }
"$python" -c 'import test.test_os' 2>/dev/null ||
    {
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "CPython's tests are missing: apt-get install libpython$version-testsuite" >&2
        exit 2
    }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Names of the tests that failed, from what unittest printed.
failures() {
    sed -n 's/^\(FAIL\|ERROR\|UNEXPECTED SUCCESS\): \([^ ]*\) (\(.*\))$/\3 \2/p' "$1" | sort -u
}

# Runs a module; prints nothing.
play() { # play FOLDER MODULE COMMAND...
    folder=$1 module=$2
    shift 2
    mkdir -p "$folder/cwd"
    status=0
    # As the module's own runner does it, each in a process of its own, with no terminal on stdin.
    (cd "$folder/cwd" && "$@" "$python" -m test -v -u all,-gui,-largefile,-network \
        --timeout 600 "$module") >"$folder/$module.out" 2>&1 </dev/null || status=$?
    echo "$status" >"$folder/$module.status"
    failures "$folder/$module.out" >"$folder/$module.failures"
}

mkdir "$work/alone" "$work/managed"
bad=0 moves=0
for module in $modules; do
    play "$work/alone" "$module" env
    report=$work/managed/$module.json
    play "$work/managed" "$module" "$symbiont" run --state-dir "$work/state" --policy random \
        --quantum 10ms --report json --report-file "$report" --
    made=$("$python" -c 'import json, sys
report = json.load(open(sys.argv[1]))
print(report["moves"]["done"] if "moves" in report else "unmanaged")' "$report")
    alone=$(cat "$work/alone/$module.status") managed=$(cat "$work/managed/$module.status")
    failed=$(wc -l <"$work/alone/$module.failures")
    new=$(comm -13 "$work/alone/$module.failures" "$work/managed/$module.failures")
    echo "$module: exit status $alone alone and $managed managed, $failed failures alone, moves $made"
    if [ "$made" = unmanaged ]; then
        bad=1
        continue
    fi
    moves=$((moves + made))
    if [ -n "$new" ] || [ "$alone" != "$managed" ]; then
        bad=1
        echo "  fails managed only: ${new:-no single test, but the exit status differs}"
        tail -n 30 "$work/managed/$module.out" | sed 's/^/  | /'
    fi
done
echo "moves in all: $moves"
[ "$moves" -gt 0 ] || bad=1
exit "$bad"
