#!/usr/bin/env python3
"""Puts a deliberate fault into Symbiont's code, plays scenarios of the guest lab that must
turn red, takes the fault back, and so on for all faults, or for those that are named.

    scripts/lab-faults.py [FAULT...]
    scripts/lab-faults.py --check

Before that it plays them without a fault, with the same patience: they must pass. Prints for
each scenario the line that it failed with, or SURVIVED; ends with 1 if any survived.
The files that faults go into must not have changes that were not committed. With --check
nothing is played: names the faults whose text does not stand exactly once in its file, and
ends with 1 if there are any.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
X86 = "x86-smt2-numa"
# So that waits in vain end sooner.
TIMEOUT = ("crates/cli/tests/faults/test_folder.rs", "from_secs(120)", "from_secs(40)")

# Name, file, what stands there, what stands there instead; a guest, scenarios.
FAULTS = [
    ("siblings-misread", "crates/core/topology/src/sysfs/cpu.rs",
     '("core_cpus_list", value::list', '("package_cpus_list", value::list',
     X86, ["topology_is_read_as_it_was_given"]),
    ("octuples-halved", "crates/core/topology/src/sysfs/cpu.rs",
     "core: siblings.unwrap_or(pu.0),", "core: siblings.unwrap_or(pu.0) + pu.0 % 8 / 4,",
     "power8-smt8", ["topology_is_read_as_it_was_given"]),
    ("speeds-overlooked", "crates/core/topology/src/sysfs/cpu.rs",
     'capacity: sys.value(&file("cpu_capacity"), value::capacity),', "capacity: None,",
     "arm64-clusters", ["topology_is_read_as_it_was_given"]),
    ("caches-overlooked", "crates/core/topology/src/sysfs/cpu.rs",
     "const LOWEST_LLC_LEVEL: u64 = 2;", "const LOWEST_LLC_LEVEL: u64 = 9;",
     "x86-two-llcs", ["topology_is_read_as_it_was_given"]),
    ("highest-together", "crates/core/policy/src/l1_bandwidth.rs",
     ".then(a.sum.total_cmp(&b.sum))", ".then(b.sum.total_cmp(&a.sum))",
     X86, ["co_runners_are_balanced_over_the_siblings_of_each_core"]),
    ("highest-together-of-eight", "crates/core/policy/src/l1_bandwidth.rs",
     ".then(a.sum.total_cmp(&b.sum))", ".then(b.sum.total_cmp(&a.sum))",
     "power8-smt8", ["co_runners_are_balanced_over_the_siblings_of_each_core"]),
    ("no-core-of-its-own", "crates/core/policy/src/phases.rs",
     "(Target::Cpus(core.cpus.intersection(&allowed)), \"a core of its own\")",
     "(Target::Cpus(allowed.difference(&core.cpus)), \"a core of its own\")",
     X86, ["a_serial_program_gets_a_whole_core"]),
    ("slowest-first", "crates/core/policy/src/phases/serial.rs",
     "(Reverse(*speeds.of_core(core).end()), in_the_way, stays, id)",
     "(Reverse(1024 - *speeds.of_core(core).end()), in_the_way, stays, id)",
     "arm64-clusters", ["a_serial_program_gets_a_whole_core"]),
    ("memory-overlooked", "crates/core/policy/src/symbiotic_numa.rs",
     ".filter(|node| node.memory_bytes != Some(0))", ".filter(|_| true)",
     "x86-two-llcs", ["the_program_that_asks_most_of_memory_runs_near_it"]),
    ("scheduler-overlooked", "crates/host/linux/src/actuate/scheduler.rs",
     'state.trim() == "disabled"', 'state.trim() != "disabled"',
     X86, ["a_loaded_scheduler_is_respected"]),
    ("masks-kept", "crates/host/linux/src/actuate/restoring.rs",
     "kernel.set_mask(key, mask.to_write(cpuset))?;", "let _ = (mask, cpuset);",
     X86, ["masks_come_back_at_the_end", "masks_come_back_by_restore_after_a_crash",
           "a_cpu_goes_offline_and_comes_back", "a_cpuset_shrinks_and_grows",
           "an_isolated_partition_takes_a_core_and_gives_it_back",
           "a_program_is_frozen_and_thawed", "one_of_several_runs_out_of_memory"]),
    ("refusals-uncounted", "crates/core/control/src/tally.rs",
     "Outcome::Refused(_) => &mut self.refused,", "Outcome::Refused(_) => &mut self.gone,",
     X86, ["an_isolated_partition_takes_a_core_and_gives_it_back"]),
    ("all-manage", "crates/host/linux/src/actuate/lock.rs",
     "FlockOperation::NonBlockingLockExclusive", "FlockOperation::NonBlockingLockShared",
     X86, ["a_second_manager_learns_of_the_first_and_is_left_alone"]),
    ("ends-with-its-starter", "crates/host/linux/src/machine.rs",
     "Wake::SupervisorGone => {}", "Wake::SupervisorGone => self.ended = true,",
     X86, ["programs_are_managed_on_without_their_starter"]),
    ("births-unheard", "crates/host/linux/src/observe/state.rs",
     "|event| tree.apply(event, hook)", "|_| { let _ = (&mut *tree, &mut *hook); }",
     X86, ["births_are_reported_by_the_proc_connector"]),
    ("births-unseen", "crates/host/linux/src/observe/state.rs",
     "tree.adopt(&found.unknown, hook);", "",
     X86, ["births_are_found_in_proc"]),
    ("clock-of-the-wall", "crates/host/linux/src/machine.rs",
     "ClockId::Monotonic", "ClockId::Realtime",
     X86, ["the_clock_jumps"]),
    ("root-alone", "crates/host/linux/src/actuate/acts.rs",
     "self.note_others(key, &now)?;",
     "self.note_others(key, &now)?; "
     "if !rustix::process::geteuid().is_root() { return Err(refused(\"not root\")); }",
     X86, ["an_ordinary_user_manages_his_programs"]),
    ("counts-halved", "crates/host/linux/src/perf/reading.rs",
     "count.wrapping_sub(before)", "count.wrapping_sub(before) / 2",
     "power9-smt4", ["instructions_and_cycles_are_those_executed"]),
    ("counts-halved-of-eight", "crates/host/linux/src/perf/reading.rs",
     "count.wrapping_sub(before)", "count.wrapping_sub(before) / 2",
     "power8-smt8", ["instructions_and_cycles_are_those_executed"]),
    ("not-scaled", "crates/host/linux/src/perf/reading.rs",
     "then_some(count as f64 * scale)", "then_some(count as f64)",
     "power9-smt4", ["groups_beyond_the_counters_are_scaled"]),
    ("old-group-goes-on", "crates/host/linux/src/perf/watch.rs",
     "index if index == old => slot.group.disable(),", "index if index == old => Ok(()),",
     "power9-smt4", ["groups_take_turns_by_quanta"]),
    ("counted-double", "crates/cli/src/stat/account.rs",
     "let per_cpu_s = estimate / cpu_s;",
     "let (estimate, per_cpu_s) = (2.0 * estimate, estimate / cpu_s);",
     "power9-smt4", ["stat_reports_what_was_executed"]),
]


def times(file: str, old: str) -> int:
    """How many times a text stands in a file; none if there is no such file."""
    path = ROOT / file
    return path.read_text().count(old) if path.is_file() else 0


def put(file: str, old: str, new: str) -> None:
    if times(file, old) != 1:
        sys.exit(f"{file} has {times(file, old)} times: {old}")
    path = ROOT / file
    path.write_text(path.read_text().replace(old, new))


def check() -> None:
    """Ends with 1 and names them if faults cannot be put into the code as it stands."""
    texts = [("(all faults)", *TIMEOUT[:2]), *(fault[:3] for fault in FAULTS)]
    misfits = [f"{name}: {file} has {times(file, old)} times: {old.strip()}"
               for name, file, old in texts if times(file, old) != 1]
    if misfits:
        print("lab-faults: these faults do not fit the code, where their text must stand once:",
              *misfits, sep="\n", file=sys.stderr)
    sys.exit(bool(misfits))


def take_back(*files: str) -> None:
    subprocess.run(["git", "checkout", "-q", "--", *files], cwd=ROOT, check=True)


def play(guest: str, scenarios: list[str]) -> str:
    """What the lab prints when a guest plays these scenarios."""
    test = ["cargo", "test", "-p", "symbiont-cli", "--no-default-features", "--profile", "guest",
            "--locked", "--test", "lab", "--"]
    listed = subprocess.run(
        [*test, "--list", "--include-ignored", f"{guest}::"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True).stdout
    names = [line.rsplit(":", 1)[0] for line in listed.splitlines() if line.endswith(": test")]
    wanted = {f"{guest}::{scenario}" for scenario in scenarios}
    if not wanted <= set(names):
        sys.exit(f"there is no {wanted - set(names)}")
    skipped = [word for name in names if name not in wanted for word in ("--skip", name)]
    return subprocess.run(
        [*test, "--include-ignored", f"{guest}::", *skipped],
        cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout


def play_changed(changes: list[tuple[str, str, str]], guest: str, scenarios: list[str]) -> str:
    """The same with less patience and with other changes, all of them taken back."""
    changes = [TIMEOUT, *changes]
    files = [file for file, *_ in changes]
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *files], cwd=ROOT).returncode:
        sys.exit(f"there are changes that were not committed in {', '.join(files)}")
    try:
        for change in changes:
            put(*change)
        return play(guest, scenarios)
    finally:
        take_back(*files)


def failing_line(printed: str, scenario: str) -> str | None:
    """The first line of what a scenario failed with."""
    _, found, rest = printed.partition(f"::{scenario} ----\n")
    return rest.splitlines()[0] if found else None


def control(faults: list[tuple]) -> None:
    """Ends if a scenario fails without a fault, or is not played."""
    for guest in dict.fromkeys(fault[4] for fault in faults):
        scenarios = {name for fault in faults if fault[4] == guest for name in fault[5]}
        printed = play_changed([], guest, sorted(scenarios))
        for scenario in sorted(scenarios):
            # As in "test power8-smt8::SCENARIO ... ok", where only names are padded.
            lines = [line for line in printed.splitlines() if f"::{scenario} " in line]
            if not any(line.rstrip().endswith("ok") for line in lines):
                sys.exit(f"{guest}::{scenario} does not pass without a fault:\n{printed}")
        print(f"{guest}: {len(scenarios)} scenarios pass without a fault", flush=True)


def main() -> None:
    asked = sys.argv[1:]
    if asked == ["--check"]:
        check()
    unknown = set(asked) - {name for name, *_ in FAULTS}
    if unknown:
        sys.exit(f"no fault is called {', '.join(unknown)}")
    faults = [fault for fault in FAULTS if not asked or fault[0] in asked]
    control(faults)
    survived = False
    for name, file, old, new, guest, scenarios in faults:
        printed = play_changed([(file, old, new)], guest, scenarios)
        for scenario in scenarios:
            line = failing_line(printed, scenario)
            survived |= line is None
            print(f"{guest}::{scenario}\n  {name}: {old.strip()} -> {new.strip()}\n"
                  f"  {line or 'SURVIVED'}", flush=True)
    sys.exit(survived)


if __name__ == "__main__":
    main()
