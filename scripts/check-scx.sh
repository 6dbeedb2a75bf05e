#!/bin/sh
# Tries the scheduler in the kernel, which 'make scx' built: its style and lints, and in guests of the lab that
# threads are kept where they belong, that no mask changes, and that nothing is left however it ends.
#   scripts/check-scx.sh          three minutes, in one guest
#   scripts/check-scx.sh guests   also with four hardware threads a core and with two last-level caches: five minutes
#   scripts/check-scx.sh kills    also 200 kills of one side or the other: an hour
#   scripts/check-scx.sh table    also how much of their time threads are where they belong, held, nudged and by the
#                                 scheduler, a program that answers requests beside batch, and how threads share a
#                                 CPU: an hour
#   scripts/check-scx.sh tables   the first of these in guests of four kinds, arm64 among them: an hour
# Beside other schedulers it is put by scripts/rivals.sh.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
'' | guests | kills | table | tables) ;;
*) sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2 ;;
esac
manifest=scx/Cargo.toml
scripts/cargo.sh fmt --manifest-path $manifest --check
if scripts/cargo.sh clippy --version >/dev/null 2>&1; then
    scripts/cargo.sh clippy --manifest-path $manifest --release --all-targets --locked -- -D warnings
else
    echo "check-scx: clippy is not installed; lints not checked" >&2
fi
scripts/cargo.sh test -q --manifest-path $manifest --release --locked
guest() {
    scripts/cargo.sh test -p symbiont-cli --no-default-features --profile guest --locked \
        --test lab -- --include-ignored "$@"
}
guest x86-smt2-numa::a_scheduler
guest x86-smt2-numa::nothing_is_left_of_a_scheduler
case ${1:-} in
guests)
    guest x86-smt4::a_scheduler
    guest x86-smt4::nothing_is_left_of_a_scheduler
    guest x86-two-llcs::a_scheduler
    guest x86-two-llcs::nothing_is_left_of_a_scheduler
    ;;
kills) guest x86-kills::nothing_is_left ;;
table)
    guest x86-timed::a_core_is_kept
    guest x86-timed::threads_of_one_cpu_share_it
    guest x86-timed::threads_are_where_they_belong
    scripts/nudging.sh x86-timed
    ;;
tables)
    scripts/fetch-lab.sh x86_64 aarch64
    guest threads_are_where_they_belong
    ;;
esac
