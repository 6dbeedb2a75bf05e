#!/usr/bin/env python3
"""Kills managers under load at random moments, and counts the threads that are left narrowed.

    scripts/kills.py [--symbiont PATH] [--kills N] [--policy NAME] [--quantum TIME] [--narrow WHICH] [--seed N]

Half of the kills meet the manager of a run, half a daemon; each manages a serial program next to a parallel one,
whose threads also come and go. SIGKILL comes between the first move and a second later. Counted at that moment,
before any restore, and once more after `symbiont restore`: threads of which a mask is not the one that they had,
among all. Prints both. Ends with 1 if more than one in a thousand was narrowed at the kill, or any after the
restore, or if fewer than nine tenths of the managers moved anything before they were killed.
With `--narrow always` most are: a campaign that finds none then can find none.
"""
import argparse, json, os, pathlib, random, shutil, signal, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPIN = "while :; do :; done"
# Busy children, one that ends and is made again, and helpers that wake now and then; next to them a serial program.
HELPERS = "import threading, time\nfor _ in range(3): threading.Thread(target=lambda: [time.sleep(.01) for _ in iter(int, 1)]).start()"
LOADS = [
    ["sh", "-c", f"python3 -c '{HELPERS}' & sh -c '{SPIN}' & sh -c '{SPIN}' & while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done"],
    ["python3", "-c", "while True: pass"],
]
FULL = os.sched_getaffinity(0)
PATIENCE = 20

def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--symbiont", default=ROOT / "target/release/symbiont")
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--policy", default="auto")
    options.add_argument("--quantum", help="by default the policy's own")
    options.add_argument("--narrow", default="as-decided", help="passed on to symbiont")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    if len(FULL) < 2:
        sys.exit("kills: there is one CPU only, so nothing is placed")
    draw = random.Random(options.seed)
    total = {"run": [0] * 5, "daemon": [0] * 5}
    for kill in range(options.kills):
        kind = ("run", "daemon")[kill % 2]
        found = one(options, kind, draw.uniform(0, 1))
        total[kind] = [so_far + more for so_far, more in zip(total[kind], found)]
    wrong = options.kills < 2
    for kind, (kills, acted, threads, narrowed, left) in total.items():
        print(f"{kind}: {kills} kills, {acted} after a move: {narrowed} of {threads} threads narrowed, {left} after the restore")
        wrong |= narrowed * 1000 > threads or left > 0 or acted * 10 < kills * 9
    sys.exit(int(wrong))

def one(options, kind, delay):
    """Kills, whether it had moved anything, threads, those narrowed at the kill, those after the restore."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
    state = folder / "state"
    deciding = ["--policy", options.policy, "--narrow", options.narrow]
    deciding += ["--quantum", options.quantum] if options.quantum else []
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started, loads = [], []
    def start(*words):
        started.append(subprocess.Popen([str(word) for word in words], start_new_session=True, **quiet))
        return started[-1]
    def symbiont(*words):
        done = subprocess.run([options.symbiont, *words, "--state-dir", state], capture_output=True, text=True)
        return done.stdout
    try:
        if kind == "run":
            job = folder / "jobs.toml"
            job.write_text("\n".join(f"[[job]]\nname = {json.dumps(name)}\ncommand = {json.dumps(load)}" for name, load in zip(("parallel", "serial"), LOADS)))
            loads = [start(options.symbiont, "run", "--own-manager", "--state-dir", state, *deciding, "--job", job)]
            manager = wait_for(lambda: json.loads((state / "lock").read_text())["manager"]["process"])
        else:
            config = folder / "symbiontd.toml"
            quantum = f'quantum = "{options.quantum}"\n' if options.quantum else ""
            config.write_text(f'policy = "{options.policy}"\nnarrow = "{options.narrow}"\n{quantum}')
            (folder / "rules").mkdir()
            manager = start(options.symbiont, "daemon", "--state-dir", state, "--config", config, "--rules", folder / "rules").pid
            wait_for(lambda: json.loads(symbiont("status", "--json")))
            loads = [start(options.symbiont, "run", "--state-dir", state, "--", *load) for load in LOADS]
        acted = wait_for(lambda: has_narrowed(state), PATIENCE / 2) is not None
        time.sleep(delay)
        if kind == "run":
            # Its supervisor would restore at once.
            os.kill(loads[0].pid, signal.SIGSTOP)
        os.kill(manager, signal.SIGKILL)
        before = masks(loads)
        symbiont("restore")
        after = masks(loads)
        return [1, int(acted), len(before), sum(before), sum(after)]
    finally:
        for process in started:
            for thread in threads(process.pid):
                stop(thread)
            stop(process.pid)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)

def wait_for(holds, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            if value := holds():
                return value
        except (OSError, ValueError, KeyError, TypeError):
            pass
        time.sleep(0.01)

def has_narrowed(state):
    """Has a mask been announced in the journal?"""
    journals = [path for path in state.iterdir() if path.name.startswith("journal")]
    lines = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    return any("mask" in line["set"][1] for line in lines if "set" in line)

def threads(root):
    """Of a process and its descendants."""
    found, left = [], [root]
    while left:
        process = left.pop()
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                found.append(int(thread))
                left += map(int, pathlib.Path(f"/proc/{process}/task/{thread}/children").read_text().split())
        except OSError:
            pass
    return found

def masks(loads):
    """Of each thread: is it narrowed?"""
    narrowed = []
    for thread in [thread for load in loads for thread in threads(load.pid)]:
        try:
            narrowed.append(os.sched_getaffinity(thread) < FULL)
        except OSError:
            pass
    return narrowed

def stop(process):
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass

main()
