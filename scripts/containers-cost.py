#!/usr/bin/env python3
"""What containers cost the daemon: CPU time and memory while it manages some of many sleeping processes, each in a
cgroup of a pod of its own, and the same processes in no container.

    scripts/containers-cost.py [--pods 500] [--containers 10] [--rounds 3] [--steady 32] [SYMBIONT]

SYMBIONT is the binary, by default target/release/symbiont. Takes root, 2 GB of memory and cgroups of version 1 or 2.
A tenth of the pods is managed. In each round, in random order: by a rule that names pods (pods); the same cgroups and
a rule that names the executable (executable); that rule and no cgroups (none). Cold: CPU time and time until all are
managed. Steady: CPU seconds a second over --steady seconds, 8 s after that; and resident memory. Prints each
measurement as a line of JSON, then means, and removes all that it made.
"""
import argparse
import json
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
CASES = ["pods", "executable", "none"]
SETTLE_S = 8
KIND = "io.kubernetes.cri."


def hierarchies():
    """Where cgroups are made: version 2's root, or those of version 1 that matter, and the unified one next to them."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [CGROUPS / name for name in ("cpu", "unified") if (CGROUPS / name / "cgroup.procs").exists()]


class Node:
    """The pods of a node, with the files that containerd would keep of them."""

    def __init__(self, folder, pods, containers):
        self.folder, self.made = folder, []
        self.tasks = folder / "ctrd/io.containerd.runtime.v2.task/k8s.io"
        self.places = []
        for pod in range(pods):
            name = f"web-{pod}" if pod % 10 == 0 else f"other-{pod}"
            slice_ = f"kubepods-burstable-podcost{pod}.slice"
            for container in range(containers):
                id_ = f"{pod:032x}{container:032x}"
                path = f"kubepods.slice/kubepods-burstable.slice/{slice_}/cri-containerd-{id_}.scope"
                self.places.append((path, "web" if pod % 10 == 0 else "rest"))
                bundle = {"annotations": {KIND + "sandbox-namespace": "shop", KIND + "sandbox-name": name,
                                          KIND + "container-name": f"c{container}", KIND + "image-name": "cost:1"},
                          "linux": {"cgroupsPath": f"{slice_}:cri-containerd:{id_}"}}
                (self.tasks / id_).mkdir(parents=True)
                (self.tasks / id_ / "config.json").write_text(json.dumps(bundle))
                for root in hierarchies():
                    self.make(root, path)
        for name in ("web", "rest"):
            shutil.copy("/bin/sleep", folder / f"{name}-sleeper")

    def make(self, root, path):
        at = root
        for part in path.split("/"):
            at = at / part
            if not at.exists():
                at.mkdir()
                self.made.append(at)

    def start(self, in_cgroups):
        """Starts a process for each container, born in its cgroup."""
        processes, own = [], str(os.getpid())
        for path, name in self.places:
            if in_cgroups:
                for root in hierarchies():
                    (root / path / "cgroup.procs").write_text(own)
            program = str(self.folder / f"{name}-sleeper")
            processes.append(os.posix_spawn(program, [program, "100000"], os.environ))
        for root in hierarchies():
            (root / "cgroup.procs").write_text(own)
        return processes

    def remove(self):
        for at in reversed(self.made):
            for _ in range(100):
                try:
                    at.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)


def end(processes):
    for process in processes:
        os.kill(process, signal.SIGKILL)
    for process in processes:
        os.waitpid(process, 0)


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def measure(symbiont, node, case, steady_s):
    """One daemon over the processes of a case."""
    folder = Path(tempfile.mkdtemp(dir=node.folder))
    (folder / "rules").mkdir()
    rule = 'pod = "shop/web-*"' if case == "pods" else 'executable = "web-sleeper"'
    (folder / "rules/50-cost.toml").write_text(f"[[rule]]\n{rule}\nmanage = true\n")
    (folder / "symbiontd.toml").write_text(f'[containers.folders]\ncontainerd = ["{node.folder}/ctrd"]\n')
    options = ["--state-dir", str(folder / "state")]
    expected = sum(name == "web" for _, name in node.places)
    processes = node.start(case != "none")
    try:
        with open(folder / "log", "w") as log:
            begin = time.monotonic()
            daemon = subprocess.Popen([symbiont, "daemon", "--config", folder / "symbiontd.toml", "--rules",
                                       folder / "rules", *options], stderr=log)
        try:
            managed = -1
            while managed != expected:
                if time.monotonic() - begin > 120 or daemon.poll() is not None:
                    raise SystemExit(f"{case}: {managed} of {expected} managed: {(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.5)
                status = subprocess.run([symbiont, "status", "--json", *options], capture_output=True, text=True)
                managed = len(json.loads(status.stdout)["programs"]) if status.returncode == 0 else -1
            cold = {"cold_cpu_s": cpu_s(daemon.pid), "cold_s": time.monotonic() - begin}
            time.sleep(SETTLE_S)
            before, since = cpu_s(daemon.pid), time.monotonic()
            time.sleep(steady_s)
            steady = (cpu_s(daemon.pid) - before) / (time.monotonic() - since)
            return {**cold, "steady_cpu_s_per_s": steady, "resident_mib": resident_mib(daemon.pid)}
        finally:
            daemon.terminate()
            daemon.wait()
    finally:
        end(processes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("pods", 500), ("containers", 10), ("rounds", 3), ("steady", 32)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("symbiont", nargs="?", default="target/release/symbiont")
    args = parser.parse_args()
    # What was made is removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="containers-cost."))
    folder.chmod(0o755)
    symbiont, draw, done = os.path.abspath(args.symbiont), random.Random(1), []
    node = Node(folder, args.pods, args.containers)
    try:
        for number in range(args.rounds):
            for case in draw.sample(CASES, len(CASES)):
                record = {"round": number, "case": case, **measure(symbiont, node, case, args.steady)}
                done.append(record)
                print(json.dumps({key: round(v, 4) if isinstance(v, float) else v for key, v in record.items()}),
                      flush=True)
    finally:
        node.remove()
        shutil.rmtree(folder)
    print(f"{args.pods} pods of {args.containers} containers, {args.rounds} rounds: mean (least to most)")
    for case in CASES:
        of = [record for record in done if record["case"] == case]
        figures = []
        for key in ("cold_s", "cold_cpu_s", "steady_cpu_s_per_s", "resident_mib"):
            values = [record[key] for record in of]
            figures.append(f"{key} {statistics.mean(values):.4g} ({min(values):.4g} to {max(values):.4g})")
        print(f"{case:11}", "  ".join(figures))


if __name__ == "__main__":
    main()
