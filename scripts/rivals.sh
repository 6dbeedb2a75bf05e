#!/bin/sh
# Puts other sched_ext schedulers and Symbiont's side by side in a guest of the lab: how much of their time threads are
# where a policy wants them, how late a program wakes next to busy threads, and how idle its siblings are while it runs.
# Builds the others from crates.io into target/rivals, once; it takes clang 18 or newer (Debian 12: clang-19), and what
# make setup-scx installs. Prints two tables; ends with 1 if a scheduler was thrown out or Symbiont's did not keep
# threads where they belong. Takes half an hour.
#   scripts/rivals.sh
set -eu
cd "$(dirname "$0")/.."
rivals='scx_bpfland@1.1.4 scx_rusty@1.1.4 scx_cosmos@1.1.7'

unset BPF_CLANG
for name in clang clang-21 clang-20 clang-19 clang-18; do
    version=$("$name" -dumpversion 2>/dev/null) && [ "${version%%.*}" -ge 18 ] || continue
    export BPF_CLANG="$name"
    break
done
[ -n "${BPF_CLANG:-}" ] || { echo "rivals: clang 18 or newer is not here (Debian 12: clang-19)" >&2; exit 1; }
scripts/setup.sh scx
for rival in $rivals; do
    name=${rival%@*}
    if [ "$("target/rivals/bin/$name" --version 2>/dev/null | awk '{ print $2 }')" != "${rival#*@}" ]; then
        scripts/cargo.sh install --locked --root target/rivals --target-dir target/rivals/build "$rival"
    fi
done
scripts/cargo.sh build --release --locked --manifest-path scx/Cargo.toml
scripts/fetch-lab.sh x86_64
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
scripts/cargo.sh test -p symbiont-cli --no-default-features --profile guest --locked \
    --test lab -- --include-ignored x86-timed::rivals >"$said" 2>&1 || status=$?
log=$(sed -n "s/^lab: x86-timed: the guest's log is in //p" "$said")
[ -n "$log" ] || { cat "$said" >&2; exit 1; }
echo "$log"
sed -n 's/^.*@lab say |/|/p' "$log"
[ "$status" = 0 ] || sed -n '/^failures:/,$p' "$said" >&2
exit "$status"
