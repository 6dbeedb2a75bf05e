#!/usr/bin/env python3
"""What Symbiont does for the latency of a pod next to batch pods: containers of runc, annotated as Kubernetes does it.

    scripts/containers-latency.py [--minutes 10] [--output FILE] [SYMBIONT [SYNTH]]

SYMBIONT and SYNTH are binaries, by default target/release/symbiont and symbiont-synth next to it. Takes root and runc.
A pod answers requests at random moments while two pods keep all CPUs busy, with a thread for each CPU each. A round
has, in random order: no daemon (off); a daemon with rules for other pods, which manages nothing (control); a daemon
with rules: the pod of class latency, the two of class batch (rules). Rounds are added until the time is over. Prints the
percentiles of each run as a line of JSON, then how many times as long they are as without a daemon in the same round:
geometric mean and its interval of 95 % (Student's t over rounds).
"""
import argparse
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
CASES = ["off", "control", "rules"]
KIND = "io.kubernetes.cri."
RULES = {
    "control": '[[rule]]\npod = "elsewhere/*"\nclass = "latency"\n',
    "rules": '[[rule]]\npod = "shop/web-*"\nclass = "latency"\n[[rule]]\npod = "shop/back-*"\nclass = "batch"\n',
}
FIGURES = ["median_us", "p99_us", "p999_us", "throughput"]
# Rules are applied within a few seconds.
WARM_UP_S, COUNTED_S = 5, 8
# Quantiles of Student's t, two-sided 95 %, by degrees of freedom.
T95 = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
       2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060]


def root_folder(folder, program):
    """A root file system with one program and what it loads."""
    shared = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for path in [word for word in shared.split() if word.startswith("/")]:
        place = folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for name in ("proc", "dev", "sys", "tmp", "bin"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copy(program, folder / "bin/synth")


class Pods:
    """Containers of runc below one folder."""

    def __init__(self, folder, synth):
        self.folder, self.count = folder, 0
        self.above = f"latency{os.getpid()}-kubepods"
        root_folder(folder / "rootfs", synth)
        (folder / "spec").mkdir()
        subprocess.run(["runc", "spec"], cwd=folder / "spec", check=True)
        self.spec = json.loads((folder / "spec/config.json").read_text())

    def runc(self, *words, **options):
        return subprocess.run(["runc", "--root", self.folder / "runc", *words], **options)

    def start(self, pod, words):
        """A pod of one container; gives its id, process and output."""
        self.count += 1
        id_ = f"{os.getpid():032x}{self.count:032x}"
        bundle = self.folder / id_
        bundle.mkdir()
        spec = json.loads(json.dumps(self.spec))
        spec["process"].update(terminal=False, args=["/bin/synth", *words], rlimits=[])
        spec["root"]["path"] = str(self.folder / "rootfs")
        spec["linux"]["cgroupsPath"] = f"/{self.above}/burstable/pod{self.count}/{id_}"
        spec["annotations"] = {KIND + "sandbox-namespace": "shop", KIND + "sandbox-name": pod,
                               KIND + "container-name": "main", KIND + "image-name": "example.org/synth:1"}
        (bundle / "config.json").write_text(json.dumps(spec))
        output = bundle / "output"
        with open(output, "w") as out, open(bundle / "errors", "w") as errors:
            process = subprocess.Popen(["runc", "--root", self.folder / "runc", "run", "-b", bundle, id_],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
        return id_, process, output

    def remove(self):
        """Ends what runs, and removes all files and cgroups."""
        listed = self.runc("list", "-q", capture_output=True, text=True).stdout.split()
        for id_ in listed:
            self.runc("delete", "-f", id_, capture_output=True)
        for above in [*CGROUPS.glob(self.above), *CGROUPS.glob(f"*/{self.above}")]:
            for at, _, _ in os.walk(above, topdown=False):
                os.rmdir(at)
        shutil.rmtree(self.folder)

    def report(self, started):
        id_, process, output = started
        process.wait()
        text = output.read_text()
        if not text:
            raise SystemExit(f"no report: {(self.folder / id_ / 'errors').read_text()}")
        return json.loads(text)


def run(symbiont, pods, case, seed):
    """One run: latencies of the requests, and iterations of the batch pods a second."""
    folder = Path(tempfile.mkdtemp(dir=pods.folder))
    daemon = None
    if case in RULES:
        (folder / "rules").mkdir()
        (folder / "rules/50-pods.toml").write_text(RULES[case])
        (folder / "symbiontd.toml").write_text(f'[containers.folders]\nrunc = ["{pods.folder}/runc"]\n')
        with open(folder / "log", "w") as log:
            daemon = subprocess.Popen([symbiont, "daemon", "--state-dir", folder / "state", "--config",
                                       folder / "symbiontd.toml", "--rules", folder / "rules"], stderr=log)
    cpus = len(os.sched_getaffinity(0))
    busy = ["threads", "--json", f"--count={cpus}", f"--busy={cpus}", "--duration=120s"]
    backs = [pods.start(f"back-{number}", busy) for number in range(2)]
    try:
        web = pods.start("web-0", ["requests", "--json", f"--warm-up={WARM_UP_S}s", f"--duration={COUNTED_S}s",
                                   f"--seed={seed}"])
        managed = 0
        if daemon:
            # While all three run: the first pod is gone when it has said its report.
            time.sleep(WARM_UP_S)
            if daemon.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            words = [symbiont, "status", "--json", "--state-dir", folder / "state"]
            status = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
            managed = len(status["programs"])
        requests = pods.report(web)
    finally:
        for id_, _, _ in backs:
            pods.runc("kill", id_, "TERM", capture_output=True)
        reports = [pods.report(back) for back in backs]
        if daemon:
            daemon.terminate()
            daemon.wait()
    throughput = sum(report["busy_iterations"] / report["elapsed_s"] for report in reports)
    figures = {key: requests[key] for key in FIGURES[:3]}
    return {**figures, "throughput": throughput, "managed": managed}


def ratio(values, others):
    """Geometric mean of the ratios, and its interval."""
    logarithms = [math.log(value / other) for value, other in zip(values, others)]
    mean = statistics.mean(logarithms)
    if len(logarithms) < 2:
        return f"{math.exp(mean):.3f}"
    t = T95[min(len(logarithms) - 2, len(T95) - 1)]
    half = t * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return f"{math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--output", default=os.devnull, help="runs as lines of JSON")
    parser.add_argument("symbiont", nargs="?", default="target/release/symbiont")
    parser.add_argument("synth", nargs="?")
    args = parser.parse_args()
    # What was made is removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    symbiont = os.path.abspath(args.symbiont)
    synth = os.path.abspath(args.synth or os.path.join(os.path.dirname(symbiont), "symbiont-synth"))
    folder = Path(tempfile.mkdtemp(prefix="containers-latency."))
    folder.chmod(0o755)
    pods, draw, done = Pods(folder, synth), random.Random(1), {case: [] for case in CASES}
    begin, longest, number = time.monotonic(), 0.0, 0
    try:
        with open(args.output, "w") as output:
            while number == 0 or time.monotonic() - begin + longest < 60 * args.minutes:
                since = time.monotonic()
                for case in draw.sample(CASES, len(CASES)):
                    record = run(symbiont, pods, case, number)
                    done[case].append(record)
                    line = json.dumps({"round": number, "case": case, **record})
                    print(line, flush=True)
                    output.write(line + "\n")
                longest, number = max(longest, time.monotonic() - since), number + 1
    finally:
        pods.remove()
    print(f"{number} rounds of {COUNTED_S} s, {os.cpu_count()} CPUs")
    for case in CASES:
        print(f"{case:8}", *(f"{key} {statistics.mean(r[key] for r in done[case]):.4g}" for key in FIGURES))
    for case in CASES[1:]:
        of = lambda which, key: [record[key] for record in done[which]]
        print(f"{case} over off:", *(f"{key} {ratio(of(case, key), of('off', key))}" for key in FIGURES))


if __name__ == "__main__":
    main()
