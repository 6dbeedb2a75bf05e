#!/usr/bin/env python3
"""What the manager of `symbiont run` costs: CPU time and memory while it manages many threads.

    scripts/manager-cost.py [--rounds 5] [--steady 8] [--synth FILE] [--load NAME]... [SYMBIONT]...

Each SYMBIONT is a binary, by default target/release/symbiont; of several, all are measured in each round, in random
order, and the others are compared with the first. The load is symbiont-synth, by default beside the first binary.
Loads: busy (64 threads that never sleep), asleep (64 that never wake), many (2,000, of which each wakes twice a
second). The quantum is 100 ms. CPU: ms of the manager's threads a second, by the scheduler's accounts, over --steady
seconds, 4 s after the start. Memory: its resident set at the end, in MiB. Prints each measurement as a line of JSON,
then means with 95 % intervals, and the mean ratio of CPU time to that of the first binary in the same round.
"""
import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTLE_S = 4
LOADS = {
    "busy": ["--count", "64", "--busy", "64"],
    "asleep": ["--count", "64", "--busy", "0", "--wakes", "0.001"],
    "many": ["--count", "2000", "--busy", "0", "--wakes", "2"],
}
# Of Student's distribution, two-sided, by degrees of freedom.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]


def manager_of(symbiont, before):
    """The process that manages: of that executable, in nobody's care but init's."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == 1 and int(folder.name) not in before and (folder / "exe").resolve() == symbiont:
                return folder
        except OSError:
            continue
    return None


def cpu_ns(manager):
    return sum(int(file.read_text().split()[0]) for file in manager.glob("task/*/schedstat"))


def measured(symbiont, synth, load, steady):
    before = {int(folder.name) for folder in Path("/proc").glob("[0-9]*")}
    last = f"{SETTLE_S + steady + 4:.0f}s"
    command = [symbiont, "run", "--quantum", "100ms", "--", synth, "threads", *LOADS[load], "--duration", last]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE_S)
        manager = manager_of(symbiont, before)
        if manager is None:
            sys.exit(f"manager-cost: no manager of {symbiont} is seen")
        start, spent = time.monotonic(), cpu_ns(manager)
        time.sleep(steady)
        spent = cpu_ns(manager) - spent
        passed = time.monotonic() - start
        resident = next(line for line in (manager / "status").read_text().splitlines() if line.startswith("VmRSS"))
    finally:
        program.terminate()
        program.wait()
    return {"ms/s": spent / 1e6 / passed, "MiB": int(resident.split()[1]) / 1024}


def estimate(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    half = STUDENT[min(len(values) - 2, len(STUDENT) - 1)] * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("symbiont", nargs="*", metavar="SYMBIONT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steady", type=float, default=8)
    parser.add_argument("--synth", type=Path)
    parser.add_argument("--load", action="append", choices=LOADS)
    options = parser.parse_args()
    symbionts = [Path(name).resolve() for name in options.symbiont or [ROOT / "target/release/symbiont"]]
    synth = (options.synth or symbionts[0].with_name("symbiont-synth")).resolve()
    for file in (*symbionts, synth):
        if not file.exists():
            parser.error(f"there is no {file}: make build")
    found = {}
    cases = [(load, symbiont) for load in options.load or LOADS for symbiont in symbionts]
    for round_ in range(options.rounds):
        random.shuffle(cases)
        for load, symbiont in cases:
            what = measured(symbiont, synth, load, options.steady)
            print(json.dumps({"round": round_, "load": load, "symbiont": str(symbiont), **what}), flush=True)
            found.setdefault((load, symbiont), []).append(what)
    for (load, symbiont), whats in sorted(found.items()):
        first = found[load, symbionts[0]]
        text = ", ".join(f"{unit} {estimate([what[unit] for what in whats])}" for unit in ("ms/s", "MiB"))
        ratio = estimate([what["ms/s"] / base["ms/s"] for what, base in zip(whats, first)])
        print(f"{load}: {symbiont}: {text}" + (f", times the first {ratio}" if symbiont != symbionts[0] else ""))


if __name__ == "__main__":
    main()
