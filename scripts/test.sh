#!/bin/bash
# All tests, four parts at the same time: the guest of the lab is an emulator that keeps one CPU busy for minutes,
# and many tests of whole programs wait more than they compute. Each part's output is printed as one piece.
set -euo pipefail
cd "$(dirname "$0")/.."
# A shell's `&` and nohup have signals ignored, which stay so in what is started; some tests send them.
workspace=(env --default-signal=HUP,INT,QUIT,TERM scripts/cargo.sh test --workspace --all-features --locked)
# Tests of whole programs that mostly wait.
waiting=(daemon faults launch real_programs)

# The folder's other tests but the lab: tests/NAME.rs and tests/NAME/main.rs.
others() {
    local path name
    for path in crates/*/tests/* crates/*/*/tests/*; do
        name=$(basename "$path" .rs)
        [ -f "$path/main.rs" ] || [ "$name.rs" = "$(basename "$path")" ] || continue
        case " lab ${waiting[*]} " in *" $name "*) ;; *) echo "$name" ;; esac
    done | sort -u
}
# part NAME ARGUMENT...: runs these tests beside the others.
part() {
    local log=$logs/$1
    shift
    "${workspace[@]}" --no-fail-fast "$@" >"$log" 2>&1 &
    parts+=("$!:$log")
}

"${workspace[@]}" --no-run
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
parts=()
failed=0
part lab --test lab
part waiting "${waiting[@]/#/--test=}"
mapfile -t others < <(others)
part others "${others[@]/#/--test=}"
"${workspace[@]}" --no-fail-fast --lib --bins || failed=1
"${workspace[@]}" --no-fail-fast --doc || failed=1
for part in "${parts[@]}"; do
    wait "${part%%:*}" || failed=1
    cat "${part#*:}"
done
exit $failed
