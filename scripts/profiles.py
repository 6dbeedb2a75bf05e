#!/usr/bin/env python3
"""Makes the profiles in profiles/ anew, from the programs in programs/.

usage: scripts/profiles.py [--out FOLDER] [--symbiont FILE] [--prepare FOLDER] [NAME...]   (default: all)

--prepare: makes inputs alone, a folder of each program in FOLDER, for
`symbiont check-sim --host --programs FOLDER`, and there a file `environment`:
variables with which the program, run natively, chooses the code that was profiled.

Needs `make build`, Debian's qemu-user and the packages of each program. A
program whose packages are missing is named and left out; the exit code is 1
then, or when a program fails.
"""

import argparse
import contextlib
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "programs"
# What a program may look at and that differs between machines is kept fixed.
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "PERL_HASH_SEED": "0",
    "PYTHONHASHSEED": "0",
}
# Where the loader finds libraries. Without that it looks them up in its cache, which takes a few
# instructions more or fewer with each package that somebody installs.
LIBRARIES = "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/lib"
# What programs load first for which the clock stands still, in their folder.
CLOCK = "./clock.so"
# What they load first natively, so that they find the emulator's processor.
PROCESSOR = "./processor.so"
EMULATOR = ["qemu-x86_64", "-cpu", "max"]
# The C library's choices under the emulator of Debian 12, which has neither AVX-512 nor transactions and says that
# it is an AMD processor (ld.so --list-diagnostics, there and natively).
UNKNOWN = """AVX512F AVX512CD AVX512BW AVX512DQ AVX512VL RTM HLE FSRM XSAVEC Fast_Rep_String Fast_Unaligned_Load
Fast_Unaligned_Copy Prefer_PMINUB_for_stringop Prefer_No_VZEROUPPER Prefer_No_AVX512""".split()
SIZES = {
    "x86_data_cache_size": 0x10000,
    "x86_shared_cache_size": 0x1080000,
    "x86_non_temporal_threshold": 0xC60000,
    "x86_rep_movsb_threshold": 0x2000,
}


def missing(packages):
    """The packages that are not installed."""
    query = ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}"]
    run = lambda package: subprocess.run(query + [package], capture_output=True, text=True)
    return [package for package in packages if not run(package).stdout.startswith("ii")]


def stands_still(program):
    """Does the clock stand still for it?"""
    return program.get("clock") == "still"


def prepare(program, folder):
    """Makes inputs and compiles what is ours."""
    if source := program.get("source"):
        compiler = "g++" if source.endswith(".cc") else "gcc"
        command = [compiler, "-O2", "-o", program["name"], PROGRAMS / "src" / source]
        command += [*program.get("libraries", []), "-lm", "-pthread"]
        subprocess.run(command, cwd=folder, check=True)
    inputs = [sys.executable, PROGRAMS / "inputs.py"]
    known = subprocess.run(inputs, capture_output=True, text=True).stderr.split("programs: ")[-1]
    if program["name"] in known.strip().split(", "):
        subprocess.run(inputs + [program["name"], "1"], cwd=folder, check=True)
    if stands_still(program):
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", CLOCK, PROGRAMS / "src/clock.c"]
        subprocess.run(command, cwd=folder, check=True)
    for command in program.get("prepare", []):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)


def native(program, folder):
    """Makes what the program needs to run natively as it was profiled."""
    source = PROGRAMS / "src/processor.c"
    subprocess.run(["gcc", "-O2", "-DTABLE", "-o", "table", source], cwd=folder, check=True)
    with open(folder / "answers.h", "wb") as file:
        subprocess.run(EMULATOR + ["./table"], cwd=folder, check=True, stdout=file)
    # First of all: constructors of other libraries ask for the processor.
    shared = ["-shared", "-fPIC", "-Wl,-z,initfirst", "-I.", "-o", PROCESSOR, source]
    subprocess.run(["gcc", "-O2", *shared], cwd=folder, check=True)
    for made in ["table", "answers.h"]:
        (folder / made).unlink()
    preloaded = [PROCESSOR] + ([CLOCK] if stands_still(program) else [])
    tunables = ["glibc.cpu.hwcaps=" + ",".join("-" + name for name in UNKNOWN)]
    tunables += [f"glibc.cpu.{name}={size:#x}" for name, size in SIZES.items()]
    variables = [f"LD_PRELOAD={':'.join(preloaded)}", LIBRARIES, f"GLIBC_TUNABLES={':'.join(tunables)}"]
    (folder / "environment").write_text("\n".join(variables) + "\n")


@contextlib.contextmanager
def prepared(program):
    """A folder with all that the program needs, which is removed afterwards."""
    # A path of the same length each time: it stands on the program's stack.
    folder = pathlib.Path(tempfile.gettempdir()) / "symbiont-profile-scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        prepare(program, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def observe(program, symbiont, folder, out, *options):
    """Observes one program into the file `out`; gives the time that took."""
    command = [symbiont, "profile", "--name", program["name"], "-o", out, *options]
    if stands_still(program):
        command += ["--env", f"LD_PRELOAD={CLOCK}"]
    command += ["--env", LIBRARIES, "--stdout", "/dev/null", "--", *program["command"]]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{program['name']}: exit code {done.returncode}")
    return time.monotonic() - begin


def arguments(description, out, more=lambda parser: None):
    """Reads the arguments; the programs to observe, and where to. `more` adds others to the parser."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs [default: all]")
    parser.add_argument("--out", type=pathlib.Path, default=out)
    parser.add_argument("--symbiont", type=pathlib.Path, default=ROOT / "target/release/symbiont")
    more(parser)
    options = parser.parse_args()
    with open(PROGRAMS / "programs.toml", "rb") as file:
        known = {program["name"]: program for program in tomllib.load(file)["program"]}
    if unknown := [name for name in options.names if name not in known]:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")
    if not options.symbiont.exists():
        sys.exit(f"{options.symbiont} is not there: `make build` makes it")
    options.symbiont, options.out = options.symbiont.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return [known[name] for name in options.names or known], options


def each(programs, make):
    """Calls make(program), which gives a file and seconds, for all that are installed."""
    left_out = 0
    for program in programs:
        if lacks := missing(program["packages"] + ["qemu-user"]):
            print(f"{program['name']}: left out; needs apt-get install {' '.join(lacks)}")
            left_out += 1
            continue
        file, seconds = make(program)
        size = "inputs" if file.is_dir() else f"{file.stat().st_size / 1024:.0f} KiB"
        print(f"{program['name']}: {size}, {seconds:.1f} s", flush=True)
    sys.exit(1 if left_out else 0)


def heed_signals():
    """Undoes what nohup and the like do: programs ask which signals they were told to ignore."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main():
    heed_signals()
    what = "make inputs alone, a folder of each program there"
    more = lambda parser: parser.add_argument("--prepare", type=pathlib.Path, metavar="FOLDER", help=what)
    programs, options = arguments(__doc__, ROOT / "profiles", more)

    def inputs(program):
        folder = options.prepare.resolve() / program["name"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begin = time.monotonic()
        prepare(program, folder)
        native(program, folder)
        return folder, time.monotonic() - begin

    def make(program):
        file = options.out / f"{program['name']}.profile"
        with prepared(program) as folder:
            return file, observe(program, options.symbiont, folder, file)

    each(programs, inputs if options.prepare else make)


if __name__ == "__main__":
    main()
