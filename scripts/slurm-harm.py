#!/usr/bin/env python3
"""Does `symbiont slurm` harm a job? Run by scripts/slurm-harm.sh next to a real controller that nothing else uses.

Submits jobs of all kinds, kills and stops the releaser at random moments, looks once in between, and watches the queue
each second. Ends with 1 if a job is held for good for longer than 5 s, one starts that was not Symbiont's to start, one
does not end, one waits longer than MOST_WAIT allows or for a node after the releaser has ended, or jobs do not start
where they were sent to.
    slurm-harm.py SYMBIONT FOLDER MOST_WAIT JOBS SEED
"""

import json, os, random, re, signal, subprocess, sys, time

symbiont, folder, most_wait, count, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
draw = random.Random(seed)
store = os.path.join(folder, "jobs.json")
log = open(os.path.join(folder, "releaser.log"), "w")
# Seconds; after its orderly end the releaser leaves no job bound to a node.
HELD_S, SCHEDULED_S, BOUND_S = 5, 10, 4


def out(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SLURM_TIME_FORMAT": "%s"})
    return done.stdout


KINDS = [
    [], [], [], ["-c", "2"], ["-c", "3"], ["-n", "4"], ["-n", "2", "--ntasks-per-node=1"], ["-C", "fast"], ["-C", "slow"],
    ["-C", "fast|slow"], ["-C", "fast&big"], ["-x", "n1"], ["-x", "n[1-2]"], ["--mem=1500"], ["--mem=3000"],
    ["--mem-per-cpu=700"], ["--gres=tok:1"], ["--exclusive"], ["--array=0-1"], ["-p", "wide"], ["-p", "wide", "-c", "3"],
    ["-p", "symbiont,wide"], ["-p", "whole"], ["--hint=nomultithread"], ["--tmp=1"], ["--licenses=lic:1"],
    ["-n", "2", "--mincpus=3"],
]


def submit():
    kind = draw.choice(KINDS)
    names = ["x", "x\n1|PD|BeginTime|1|symbiont||0|1|1|1||||||symbiont:waits|", "a|b"]
    command = ["sbatch", "--parsable", "-o", "/dev/null", "-J", draw.choice(names), "-t", str(draw.choice([1, 5]))]
    command += ([] if "-p" in kind else ["-p", "symbiont"]) + kind
    done = subprocess.run(command + ["--wrap", f"sleep {draw.uniform(0.3, 3):.1f}"], capture_output=True, text=True)
    job = re.match(r"\d+", done.stdout)
    return job and (int(job[0]), kind)


def start(*options):
    command = [symbiont, "slurm", "--store", store, "--interval", "1s", "--max-wait", f"{most_wait // 2}s", *options]
    return subprocess.Popen(command, stdout=log, stderr=log)


victims = [int(out("sbatch", "--parsable", "-o", "/dev/null", "-p", "plain", "--begin=now+1hour", "--wrap", "true"))
           for _ in range(5)]
jobs, held, faults, acts = {}, {}, [], {"killed": 0, "stopped": 0, "once": 0, "slow to stop": 0}
releaser, until, stopped = start(), 0.0, None
begin, end = time.time(), time.time() + 10 * most_wait
while time.time() < end:
    for _ in range(min(draw.randrange(8), count - len(jobs))):
        if made := submit():
            jobs[made[0]] = made[1]
    now = time.time()
    rows = [row.split("|") for row in out("squeue", "-h", "-a", "-r", "-o", "%A|%t|%r|%Q|%n").splitlines()]
    for job, state, reason, priority, asks in rows:
        # Of its own accord no job asks for a node.
        if stopped and now - stopped > BOUND_S and state == "PD" and asks:
            faults.append(f"job {job} {jobs.get(int(job))} still waits for {asks} {now - stopped:.0f} s after the end")
            stopped = None
        is_held = state == "PD" and (reason == "BadConstraints" or priority == "0")
        since = held.setdefault(job, now) if is_held else held.pop(job, now)
        if is_held and now - since > HELD_S:
            faults.append(f"job {job} {jobs.get(int(job))} is held for good ({reason}, priority {priority})")
            held[job] = float("inf")
    if now > until and releaser.poll() is None:
        act = draw.choice(["killed", "stopped"])
        releaser.send_signal(signal.SIGKILL if act == "killed" else signal.SIGTERM)
        asked = time.time()
        releaser.wait(30)
        acts["slow to stop"] += act == "stopped" and time.time() - asked > 1.0
        acts[act] += 1
        stopped = time.time() if act == "stopped" else None
        until = time.time() + draw.choice([0, 0, 8])
    if releaser.poll() is not None and now > until:
        stopped = None
        is_once = draw.random() < 0.3
        acts["once"] += is_once
        releaser, until = start(*["--once"] * is_once), now + draw.uniform(2, 12)
    waiting = [row for row in rows if int(row[0]) not in victims]
    if len(jobs) >= count and not waiting:
        break
    time.sleep(max(0.0, 1.0 - (time.time() - now)))
else:
    faults.append(f"jobs do not end: {waiting[:5]}")
releaser.terminate()
releaser.wait(30)

# No field that a user writes.
names = ["ArrayJobID", "SubmitTime", "StartTime", "StateCompact", "NodeList"]
shown = {}
for line in out("squeue", "-h", "-a", "-r", "-t", "all", "-O", ",".join(f"{name}:40|" for name in names)).splitlines():
    field = dict(zip(names, map(str.strip, line.split("|"))))
    shown.setdefault(int(field["ArrayJobID"]), field)
for job in [job for job in victims if shown.get(job, {}).get("StateCompact") != "PD"]:
    faults.append(f"job {job} was started, and is not Symbiont's")
waits = {}
for job in jobs:
    times = [shown.get(job, {}).get(name, "") for name in ("SubmitTime", "StartTime")]
    if all(time.isdigit() for time in times):
        waits[job] = int(times[1]) - int(times[0])
late = {job: wait for job, wait in waits.items() if wait > most_wait + 60}
faults += [f"job {job} {jobs[job]} waited for {wait} s" for job, wait in late.items()]
sent, started, left = 0, 0, 0
for line in open(os.path.join(folder, "slurm.jsonl")):
    one = json.loads(line)
    left += one.get("is_left", False)
    if one["node"] and not one.get("is_kept"):
        sent += 1
        field = shown.get(one["job"], {})
        starts = field.get("StartTime", "")
        is_there = field.get("NodeList") == one["node"] and starts.isdigit()
        is_there = is_there and int(starts) - one["at_s"] <= SCHEDULED_S
        started += is_there
        if not is_there:
            late_s = int(starts) - one["at_s"] if starts.isdigit() else starts
            print(f"   job {one['job']} {jobs.get(one['job'])} was sent to {one['node']}, is on {field.get('NodeList')}, {late_s} s later")
by_clock = sum(wait >= most_wait for wait in waits.values())
print(f"{len(jobs)} jobs in {time.time() - begin:.0f} s: {sent} sent to a node, {started} of them started there within "
      f"{SCHEDULED_S} s, {left} left to Slurm; longest wait {max(waits.values(), default=0)} s of {most_wait}, {by_clock} by Slurm's own clock; releaser {acts}")
if started < 0.95 * sent:
    faults.append(f"{started} of {sent} released jobs start where they were sent to")
if acts["slow to stop"]:
    faults.append(f"the releaser took longer than a second to stop {acts['slow to stop']} times")
for fault in faults:
    print(f"slurm-harm: FAILED: {fault}", file=sys.stderr)
sys.exit(bool(faults))
