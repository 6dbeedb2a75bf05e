#!/usr/bin/env python3
"""Programs come and go under a daemon, which is killed now and then.

    scripts/soak-daemon.py [--symbiont PATH] [--minutes M] [--programs N] [--threads T] [--kills K]

Starts a daemon with policy `random` and a quantum of 100 ms in a directory of its own, keeps N programs
coming and going, at half time as many at once as have T threads together, kills the daemon K times and starts it again. Prints
the daemon's CPU share, memory and descriptors, early and late. Fails if a program ends wrongly or
runs unmanaged, if one is unknown to a daemon a second after it restarted, if a question is not
answered, if less than nine tenths of the T threads were managed at a time, or if anything stays
changed at the end.
"""
import argparse, json, os, random, signal, subprocess, sys, tempfile, time

WORK = """
import random, threading, time
def work(end):
    while time.time() < end:
        sum(range(2000)); time.sleep(random.choice((0, 0.002, 0.02)))
end = time.time() + {seconds}
threads = [threading.Thread(target=work, args=(end,)) for _ in range({threads})]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
raise SystemExit({status})
"""

def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--symbiont", default="target/release/symbiont")
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--programs", type=int, default=200, help="started in all")
    options.add_argument("--threads", type=int, default=2000, help="at a time")
    options.add_argument("--kills", type=int, default=50)
    options = options.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options, folder)
        try:
            code = soak.run()
        finally:
            soak.end()
    sys.exit(code)

class Soak:
    def __init__(self, options, folder):
        self.options, self.state = options, os.path.join(folder, "state")
        self.symbiont = os.path.abspath(options.symbiont)
        self.config = os.path.join(folder, "symbiontd.toml")
        with open(self.config, "w") as file:
            file.write('policy = "random"\nquantum = "100ms"\n')
        self.log = open(os.path.join(folder, "log"), "ab")
        self.faults, self.own = [], allowed("self")
        self.said = open(os.path.join(folder, "said"), "w+")
        self.running, self.daemon = [], None
        # Programs and questions compete as a user's do; what starts them does not.
        if os.geteuid() == 0:
            os.nice(-15)
        self.normal = lambda: os.nice(-os.nice(0))

    def start(self):
        self.daemon = subprocess.Popen([self.symbiont, "daemon", "--state-dir", self.state, "--config", self.config], stderr=self.log, preexec_fn=self.normal)
        self.since, self.cpu_before = time.time(), 0.0
        while self.status() is None:
            if self.daemon.poll() is not None:
                sys.exit("the daemon ended: " + open(self.log.name).read()[-2000:])
            time.sleep(0.01)

    def status(self):
        asked = subprocess.run([self.symbiont, "status", "--json", "--state-dir", self.state], capture_output=True, preexec_fn=self.normal)
        return json.loads(asked.stdout) if asked.returncode == 0 else None

    def programs(self):
        """What `status` lists; that it does not answer is a fault."""
        status = self.status()
        if status is None:
            self.faults.append("the daemon did not answer `status`")
            return []
        return status["programs"]

    def end(self):
        """Leaves nothing behind, whatever happened."""
        for process in [program for program, _, _ in self.running] + [self.daemon]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def figures(self):
        pid = self.daemon.pid
        stat = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        cpu = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
        rss = next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))
        return cpu, rss / 1024, len(os.listdir(f"/proc/{pid}/fd"))

    def run(self):
        o = self.options
        self.start()
        begin, end = time.time(), time.time() + o.minutes * 60
        running, started, kills, told, peak = self.running, 0, 0, begin, 0
        burst = -(-o.threads // 64)
        while time.time() < end or running:
            for program, status, threads in list(running):
                if program.poll() is not None:
                    running.remove((program, status, threads))
                    if program.returncode != status:
                        self.faults.append(f"a program ended with {program.returncode}, not {status}")
            share = min(1.0, (time.time() - begin) / (o.minutes * 60) * 1.2)
            due = share * max(0, o.programs - burst) + (burst if share > 0.6 else 0)
            busy = sum(threads for _, _, threads in running)
            while time.time() < end - 5 and started < due:
                is_burst = due - started > 1 and share > 0.6 and busy < o.threads
                threads = 64 if is_burst else random.choice((1, 2, 4, 16, 64))
                seconds = min(60 if is_burst else random.uniform(1, 40), max(1, end - 5 - time.time()))
                status = random.choice((0, 0, 3))
                text = WORK.format(seconds=seconds, threads=threads, status=status)
                running.append((subprocess.Popen([self.symbiont, "run", "--state-dir", self.state, "--", sys.executable, "-c", text], stderr=self.said, preexec_fn=self.normal), status, threads))
                started, busy = started + 1, busy + threads
            if kills < o.kills and time.time() > begin + (kills + 1) * o.minutes * 55 / o.kills:
                kills += 1
                self.kill(running)
            if time.time() - told > (5 if share > 0.6 else max(5, o.minutes * 6)):
                told = time.time()
                cpu, rss, files = self.figures()
                shown = sum(program["threads"] for program in self.programs())
                peak = max(peak, shown)
                print(f"{told - begin:5.0f} s: {len(running)} programs, {shown} threads managed; since its last start "
                      f"{cpu / (told - self.since) * 100:.2f} % of a CPU, {rss:.1f} MiB, {files} descriptors", flush=True)
            time.sleep(0.05)
        deadline = time.time() + 10
        while (left := self.programs()) and time.time() < deadline:
            time.sleep(0.1)
        cpu, rss, files = self.figures()
        print(f"at the end: {rss:.1f} MiB, {files} descriptors, {len(left)} programs known")
        if left:
            self.faults.append("programs that ended are still listed")
        self.daemon.send_signal(signal.SIGTERM)
        if self.daemon.wait(30) != 0:
            self.faults.append(f"the daemon ended with {self.daemon.returncode}")
        left = [name for name in os.listdir(self.state) if name.startswith("journal")]
        if left:
            self.faults.append(f"journals left: {left}")
        self.said.seek(0)
        self.faults += [line.strip() for line in self.said]
        if peak < 0.9 * o.threads:
            self.faults.append(f"{peak} threads were managed at the peak, not {o.threads}")
        print(f"{started} programs, {peak} threads at the peak, {kills} kills, {len(self.faults)} faults")
        for fault in self.faults[:20]:
            print("  " + fault)
        return 1 if self.faults else 0

    def kill(self, running):
        """Kills the daemon, starts it anew: what lives must be known again within a second."""
        time.sleep(1.2)  # enrolments are noted once a second at most
        known = {root for program in self.programs() for root in program["roots"]}
        self.daemon.kill()
        self.daemon.wait()
        self.start()
        restarted = time.time()
        alive = {p.pid for p, _, _ in running if p.poll() is None and p.pid in known}
        missing = alive
        while missing and time.time() < restarted + 1:
            known = {root for program in self.programs() for root in program["roots"]}
            missing = {pid for pid in alive if os.path.exists(f"/proc/{pid}/task")} - known
        missing = {pid for pid in missing if any(p.pid == pid and p.poll() is None for p, _, _ in running)}
        if missing:
            self.faults.append(f"not managed again after a crash: {sorted(missing)}")

def allowed(process):
    return next(line.split()[1] for line in open(f"/proc/{process}/status") if line.startswith("Cpus_allowed_list"))

main()
