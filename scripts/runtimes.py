#!/usr/bin/env python3
"""Programs of real runtimes count the CPUs under Symbiont that they count without it.

    scripts/runtimes.py [--symbiont PATH] [--runs N] [--policies LIST] [--runtimes LIST] [--alone | --beside]
                        [--serial SECONDS] [--parallel SECONDS] [--quantum TIME] [--narrow WHICH]
                        [--at-once N] [--minutes M]
    scripts/runtimes.py --guest [--runs N] [--policies LIST] [--runtimes LIST] [--serial SECONDS] [--parallel SECONDS]
                        [--quantum TIME] [--narrow WHICH] [--minutes M]

Builds the programs of `scripts/runtimes`, one for each runtime: one busy thread for some seconds, then a
parallel phase, sized by what the runtime says. Each writes what it counts in each phase. Runs each without
Symbiont, then N times under each policy, alone and next to a serial program, and prints how many of these runs
counted anything else: at once what, at the end a table. Runs that differ are kept in the build folder. A campaign
that was cut off (`--minutes`, ^C) goes on where it stopped: runs of the same symbiont and with the same options are
noted in the build folder's `runs.jsonl`, and counted instead of being repeated. What is
not installed is skipped, with the reason, and so is a policy that this machine refuses. Policies that need
counters count software events, by the catalogues of the tests. Ends with 1 if any run differs, with 2 if nothing ran
or one in ten said too little.
With `--narrow always` runs must differ: a campaign that finds none then can find none.

With `--guest` the same in a guest of the lab: four cores of two threads each, with the runtimes that need nothing
but their program and its libraries, and `--narrow always` is tried each time. Ends with 1 if no run differs there.
"""
import argparse, collections, concurrent.futures, glob, hashlib, itertools, json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN = ROOT / "scripts/runtimes"
POLICIES = "auto,phases,never-twice,random,fpu,symbiotic-online"
RUNTIMES = "go,java,cpython,numpy,rust,node,libgomp,libomp,hwloc"
# The lab's guest, what is brought along, and how its processor is called.
GUEST = "x86-runtimes"
IN_GUEST = "go,rust,libgomp,libomp,hwloc"
PROCESSOR = "Intel Core i7 9xx (Nehalem Class Core i7)"
CATALOGUES = {"fpu": ROOT / "crates/cli/tests/lab/inside/even.toml", "symbiotic": ROOT / "crates/cli/tests/counting/toy.toml"}
# Where threads are kept to fewer CPUs in each run next to a serial program.
CONTROLS = "phases,random"
# What users set to have a runtime count otherwise.
SIZES = "GOMAXPROCS OMP_NUM_THREADS OPENBLAS_NUM_THREADS RAYON_NUM_THREADS PYTHON_CPU_COUNT JAVA_TOOL_OPTIONS UV_THREADPOOL_SIZE HWLOC_COMPONENTS".split()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in SIZES}
SERIAL = "trap 'exit 0' TERM; echo $$ >{pid}; while :; do :; done"
# How much longer than asked a run may take, on a busy machine.
LATE = 90

class Skipped(Exception):
    pass

def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--symbiont", default=ROOT / "target/release/symbiont")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--policies", default=POLICIES)
    options.add_argument("--runtimes", help=f"of {RUNTIMES}; by default all, in a guest {IN_GUEST}")
    options.add_argument("--guest", action="store_true", help="in a guest of the lab")
    place = options.add_mutually_exclusive_group()
    place.add_argument("--alone", action="store_true", help="only alone")
    place.add_argument("--beside", action="store_true", help="only next to a serial program")
    options.add_argument("--serial", type=float, default=3, help="seconds")
    options.add_argument("--parallel", type=float, default=1, help="seconds")
    options.add_argument("--quantum", default="20ms", help="or `own`: the policy's")
    options.add_argument("--narrow", help="passed on to `symbiont run`")
    options.add_argument("--at-once", type=int, default=1, help="runs at a time")
    options.add_argument("--minutes", type=float, help="no run starts later")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "target/runtimes", help="folder")
    options = options.parse_args()
    there_are = IN_GUEST if options.guest else RUNTIMES
    options.runtimes = options.runtimes or there_are
    if unknown := set(options.runtimes.split(",")) - set(there_are.split(",")):
        sys.exit(f"unknown runtimes: {', '.join(sorted(unknown))}; there are {there_are}")
    options.build = options.build.resolve()
    options.build.mkdir(parents=True, exist_ok=True)
    options.symbiont = os.path.abspath(options.symbiont)
    # Also where a shell in the background had it ignored. What runs is waited for.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options, pathlib.Path(folder))
        campaign.build()
        if options.guest:
            sys.exit(campaign.in_guest())
        campaign.recall()
        campaign.run()
        campaign.print()
    sys.exit(campaign.status())

def said(*command, **more):
    """What a command wrote; skipped with its last line, if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=ENVIRONMENT | more, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Skipped(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["no word"]
        raise Skipped(f"{pathlib.Path(command[0]).name}: " + lines[-1])
    return done.stdout

class Programs:
    """Each function makes the programs of a runtime: pairs of a name and a command."""
    def __init__(self, folder):
        self.folder = folder

    def go(self):
        folder = self.folder / "go"
        folder.mkdir(exist_ok=True)
        shutil.copy(OWN / "counts.go", folder)
        # From 1.25 on the mask is followed, where go.mod says so, too.
        (folder / "go.mod").write_text("module counts\n\ngo 1.25\n")
        said("go", "build", "-C", folder, "-o", folder / "counts", ".", GOTOOLCHAIN="local", GOFLAGS="")
        yield "go" + said("go", "env", "GOVERSION").strip().removeprefix("go"), [folder / "counts"]

    def java(self):
        folder = self.folder / "java"
        homes = {pathlib.Path(path).resolve() for path in glob.glob("/usr/lib/jvm/*/bin/java") + [shutil.which("java") or "/"]}
        versions = {}
        for java in sorted(path for path in homes if path.is_file()):
            text = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
            if version := re.search(r'version "(?:1\.)?(\d+)', text):
                versions.setdefault(int(version[1]), java)
        compilers = [java.with_name("javac") for _, java in sorted(versions.items()) if java.with_name("javac").exists()]
        if not compilers:
            raise Skipped("no JDK")
        oldest = next(version for version, java in sorted(versions.items()) if java.with_name("javac").exists())
        said(compilers[0], "-d", folder, OWN / "Counts.java")
        for version, java in sorted(versions.items()):
            if version >= oldest:
                yield f"java{version}", [java, "-cp", folder, "Counts"]

    def python(self):
        """The newest there is."""
        names = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
        found = {sys.version_info[:2]: sys.executable}
        for path in names + [shutil.which(f"python3.{minor}") for minor in range(13, 20)]:
            try:
                version = path and said(path, "-c", "import sys; print(*sys.version_info[:2])")
            except Skipped:
                continue
            if version:
                found.setdefault(tuple(map(int, version.split())), path)
        newest = max(found)
        return "{}.{}".format(*newest), found[newest]

    def cpython(self):
        version, python = self.python()
        yield "cpython" + version, [python, OWN / "executor.py"]

    def numpy(self):
        version, python = self.python()
        venv = self.folder / ("venv" + version)
        if not (venv / "whole").exists():
            said(python, "-m", "venv", "--clear", venv)
            said(venv / "bin/pip", "install", "--quiet", "--only-binary", ":all:", "numpy", "threadpoolctl")
            (venv / "whole").touch()
        yield "numpy", [venv / "bin/python", OWN / "blas.py"]

    def rust(self):
        folder = self.folder / "rust"
        folder.mkdir(exist_ok=True)
        (folder / "Cargo.toml").write_text(
            '[package]\nname = "counts"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\nrayon = "1"\n\n'
            f'[[bin]]\nname = "counts"\npath = {json.dumps(str(OWN / "counts.rs"))}\n')
        said("cargo", "build", "--release", "--quiet", "--manifest-path", folder / "Cargo.toml", "--target-dir", folder / "target")
        yield "rust+rayon", [folder / "target/release/counts"]

    def node(self):
        yield "node" + said("node", "--version").strip().lstrip("v").split(".")[0], ["node", OWN / "counts.mjs"]

    def compiled(self, name, compiler, source, *flags):
        said(compiler, "-O2", "-o", self.folder / name, OWN / source, *flags)
        yield name, [self.folder / name]

    def libgomp(self):
        return self.compiled("libgomp", "gcc", "openmp.c", "-fopenmp")

    def libomp(self):
        return self.compiled("libomp", "clang", "openmp.c", "-fopenmp=libomp")

    def hwloc(self):
        return self.compiled("hwloc", "cc", "topology.c", "-lhwloc", "-lpthread")

class Campaign:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.programs, self.expected, self.skipped = {}, {}, {}
        self.policies = [policy for policy in options.policies.split(",") if policy]
        self.places = [place for place in ("alone", "beside") if not getattr(options, {"alone": "beside", "beside": "alone"}[place])]
        self.ran, self.differ, self.moves = collections.Counter(), collections.Counter(), collections.defaultdict(list)
        self.differing = options.build / "differing"
        self.notes, self.conditions = options.build / "runs.jsonl", []
        self.done, self.incomplete = set(), 0
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        self.model = folder / "model.toml"
        self.model.write_text(model(PROCESSOR if options.guest else (names or ["an unknown processor"])[0]))

    def build(self):
        programs = Programs(self.options.build)
        for runtime in self.options.runtimes.split(","):
            try:
                for name, command in getattr(programs, runtime)():
                    command = [str(word) for word in command]
                    phases = [str(self.options.serial), str(self.options.parallel)]
                    expected = counts(said(*command, *phases))
                    if counts(said(*command, "0.2", "0.2")) != expected:
                        raise Skipped(f"{name} does not count the same twice, unmanaged")
                    self.programs[name], self.expected[name] = command + phases, expected
                    print(f"{name}: unmanaged", shown(self.expected[name]), flush=True)
            except Skipped as reason:
                self.skipped[runtime] = str(reason)
                print(f"{runtime}: skipped: {reason}", flush=True)

    def recall(self):
        """Counts the runs that were noted."""
        symbiont = hashlib.sha256(pathlib.Path(self.options.symbiont).read_bytes()).hexdigest()
        self.conditions = [symbiont, self.options.quantum, self.options.narrow, self.options.serial, self.options.parallel]
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        for line in lines:
            try:
                note = json.loads(line)
            except ValueError:
                # The campaign was killed in the middle of it.
                continue
            index, *key = note["run"]
            if note["conditions"] == self.conditions and key[1] in self.programs and index < self.options.runs:
                self.done.add(tuple(note["run"]))
                self.count(tuple(key), note["faults"], note["moves"])
        if self.done:
            print(f"{len(self.done)} runs were done before ({self.notes})", flush=True)

    def count(self, key, faults, moves):
        self.ran[key] += 1
        self.differ[key] += bool(faults)
        self.moves[key[0], key[2]] += [] if moves is None else [moves]

    def run(self):
        last = time.monotonic() + 60 * (self.options.minutes or float("inf"))
        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for index, policy in itertools.product(range(self.options.runs), self.policies):
                if time.monotonic() > last:
                    break
                tasks = [pool.submit(self.one, index, name, policy, place, last) for name in self.programs for place in self.places]
                try:
                    for task in tasks:
                        task.result()
                except KeyboardInterrupt:
                    pool.shutdown(cancel_futures=True)
                    print("interrupted")
                    return
                print(f"run {index}, {policy}: so far {self.ran.total()} runs, {self.differ.total()} differ", flush=True)

    def one(self, index, name, policy, place, last):
        if policy in self.skipped or time.monotonic() > last or (index, policy, name, place) in self.done:
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = pathlib.Path(folder)
            faults = self.judge(folder, index, policy, name, place, *self.managed(folder, index, name, policy, place))
            if faults:
                kept = self.differing / f"{policy}-{name}-{place}-{index}"
                shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("state"))
                print(f"DIFFERS: {name} under {policy}, {place}, run {index}: {'; '.join(faults)} ({kept})", flush=True)
                for line in (folder / "error").read_text().splitlines():
                    print("    " + line, flush=True)

    def judge(self, folder, index, policy, name, place, output, error, status):
        """Counts and notes a run: what it counted otherwise."""
        if unmanaged := re.search(r"runs unmanaged: (.*)", error):
            self.skipped[policy] = unmanaged[1]
            print(f"{policy}: skipped: {unmanaged[1]}", flush=True)
            return []
        if status == 125:
            sys.exit(f"symbiont refuses: {error}")
        report = json.loads((folder / "report").read_text()) if (folder / "report").exists() else None
        moves = report and report["moves"]["done"]
        faults, missing = differences(self.expected[name], output)
        if status:
            faults.append(f"status {status}")
        if (missing or status is None) and not faults:
            # On a busy machine a phase may be over before its first look. It is run again the next time.
            self.incomplete += 1
            late = ["not done in time"] * (status is None)
            print(f"not counted: {name} under {policy}, {place}, run {index}: {', '.join(late + [f'no {what}' for what in missing])}", flush=True)
            return []
        self.count((policy, name, place), faults, moves)
        with open(self.notes, "a") as notes:
            notes.write(json.dumps({"conditions": self.conditions, "run": [index, policy, name, place], "faults": faults, "moves": moves}) + "\n")
        return faults

    def way(self, policy, narrow):
        """Options of `symbiont run`."""
        options = ["--policy", policy]
        if self.options.quantum != "own":
            options += ["--quantum", self.options.quantum]
        if narrow:
            options += ["--narrow", narrow]
        if catalogue := CATALOGUES.get(policy.split("-")[0]):
            options += ["--catalogue", catalogue]
        if policy.startswith("symbiotic"):
            options += ["--model", self.model]
        return [str(word) for word in options]

    def in_guest(self):
        """Plays the scenario of the guest, and prints its table; the exit status."""
        if not self.programs:
            return 2
        way = lambda name, control, *about: {"name": name, "control": control, "options": self.way(*about) + ["--patience", f"{LATE}s"]}
        ways = [way(policy, False, policy, self.options.narrow) for policy in self.policies]
        ways += [way(f"{policy}, held", True, policy, "always") for policy in CONTROLS.split(",")]
        plan = self.options.build / "guest.json"
        plan.write_text(json.dumps({
            "programs": self.programs, "ways": ways, "runs": self.options.runs, "minutes": self.options.minutes,
            "files": {str(path): path.read_text() for path in [self.model, *CATALOGUES.values()]}}))
        subprocess.run([ROOT / "scripts/fetch-lab.sh", "x86_64"], check=True)
        played = subprocess.Popen(
            [ROOT / "scripts/cargo.sh", "test", "-p", "symbiont-cli", "--no-default-features", "--profile", "guest",
             "--locked", "--test", "lab", "--", "--include-ignored", GUEST],
            cwd=ROOT, env=ENVIRONMENT | {"SYMBIONT_LAB_PROGRAMS": str(plan)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in played.stdout:
            lines.append(line)
            # As it is said in the guest, with the seconds since it began to boot.
            if said := re.match(r"lab: (\d+ s: .*)", line):
                print(said[1], flush=True)
        log = re.search(rf"lab: {GUEST}: the guest's log is in (.*)", "".join(lines))
        if not log:
            print("".join(lines))
            return 2
        for line in pathlib.Path(log[1]).read_text().splitlines():
            if ended := re.search(r"@lab end (.*)", line):
                print(ended[1])
        print(f"all of it is in {log[1]}")
        return 1 if played.wait() else 0

    def managed(self, folder, index, name, policy, place):
        """What a run wrote, on both outputs, and its status; none: it was ended, since it took too long."""
        options = ["--state-dir", folder / "state", *self.way(policy, self.options.narrow)]
        # Every other run alone, symbiont is the parent instead of what becomes the program.
        if place == "beside" or index % 2:
            options += ["--report", "json", "--report-file", folder / "report", "--record", folder / "recording"]
        output, error, pid = folder / "output", folder / "error", folder / "pid"
        if place == "beside":
            serial = ["sh", "-c", SERIAL.format(pid=pid)]
            (folder / "jobs.toml").write_text(
                f"[[job]]\nname = 'program'\ncommand = {json.dumps(self.programs[name])}\nstdout = {json.dumps(str(output))}\n"
                f"[[job]]\nname = 'serial'\ncommand = {json.dumps(serial)}\n")
            options += ["--job", folder / "jobs.toml"]
        else:
            options += ["--", *self.programs[name]]
        last = time.monotonic() + self.options.serial + self.options.parallel + LATE
        is_late = False
        with open(error, "wb") as errors, open(output, "wb") as outputs:
            program = subprocess.Popen([str(word) for word in [self.options.symbiont, "run", *options]], stdin=subprocess.DEVNULL, stdout=outputs, stderr=errors, env=ENVIRONMENT)
            try:
                serial_ended = place == "alone"
                while program.poll() is None and time.monotonic() < last:
                    if not serial_ended and pid.exists() and pid.read_text().strip() and b'"end"' in output.read_bytes():
                        # A moment for the program to end by itself.
                        time.sleep(0.2)
                        os.kill(int(pid.read_text()), signal.SIGTERM)
                        serial_ended = True
                    time.sleep(0.05)
            finally:
                if program.poll() is None:
                    is_late = True
                    program.terminate()
                    if not serial_ended and pid.exists() and pid.read_text().strip():
                        os.kill(int(pid.read_text()), signal.SIGTERM)
                    program.wait()
        return output.read_text(), error.read_text(), None if is_late else program.returncode

    def print(self):
        policies = [policy for policy in self.policies if any(key[0] == policy for key in self.ran)]
        print(f"\nRuns that differ, of all: quantum {self.options.quantum}, narrowed {self.options.narrow or 'as by default'}\n")
        width = max(len(name) for name in [*self.programs, "moves, least to most"]) + 2
        print(" " * (width + 8) + "".join(f"{policy:>18}" for policy in policies))
        for place in self.places:
            for name in self.programs:
                cells = [f"{self.differ[policy, name, place]}/{self.ran[policy, name, place]}" for policy in policies]
                print(f"{name:<{width}}{place:<8}" + "".join(f"{cell:>18}" for cell in cells))
            cells = [f"{min(moves)} to {max(moves)}" if (moves := self.moves[policy, place]) else "" for policy in policies]
            print(f"{'moves, least to most':<{width}}{place:<8}" + "".join(f"{cell:>18}" for cell in cells))
        for name, reason in self.skipped.items():
            print(f"{name}: skipped: {reason}")
        for policy, place in self.unmoved():
            print(f"{policy}, {place}: no thread was moved, so these runs show nothing")
        print(f"\n{self.ran.total()} runs, {self.differ.total()} differ, {self.incomplete} incomplete")

    def unmoved(self):
        return [key for key, moves in self.moves.items() if moves and not any(moves)]

    def status(self):
        shows_nothing = self.moves and len(self.unmoved()) == len(self.moves)
        if not self.ran or self.incomplete > self.ran.total() / 10 or shows_nothing:
            return 2
        return 1 if self.differ.total() else 0

def counts(output):
    """What was counted, by phase and quantity: all values that occurred."""
    found = collections.defaultdict(set)
    for line in output.splitlines():
        line = json.loads(line)
        found[line["phase"], line["of"]].add(line["count"])
    return {key: tuple(sorted(values)) for key, values in found.items()}

def differences(expected, output):
    """What was counted otherwise, and what was not counted at all."""
    try:
        counted = counts(output)
    except (ValueError, KeyError) as error:
        return [f"unreadable output: {error}"], []
    words = lambda values: ", ".join(map(str, values))
    other = [f"{phase} {of}: {words(counted[phase, of])} instead of {words(expected.get((phase, of), ['none']))}"
        for phase, of in counted if counted[phase, of] != expected.get((phase, of))]
    return other, [f"{phase} {of}" for phase, of in expected.keys() - counted.keys()]

def shown(expected):
    of = collections.defaultdict(set)
    for (_, quantity), values in expected.items():
        of[quantity].update(values)
    return ", ".join(f"{quantity} {'/'.join(map(str, sorted(values)))}" for quantity, values in of.items())

def model(processor):
    """A model file for a processor: its checksum is FNV-1a over what follows it."""
    body = re.sub(r"(?m)^machine = .*", lambda _: "machine = " + json.dumps(processor), (OWN / "model.toml").read_text(), count=1)
    checksum = 0xcbf29ce484222325
    for byte in body.encode():
        checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
    return f'# Interference model of Symbiont, made by training; edits are refused.\nversion = 5\nchecksum = "{checksum:016x}"\n{body}'

if __name__ == "__main__":
    main()
