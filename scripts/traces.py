#!/usr/bin/env python3
"""Makes instruction traces of the programs in programs/, for simulators that go cycle by cycle.

usage: scripts/traces.py [--out FOLDER] [--symbiont FILE] [--continuous MILLIONS] [NAME...]   (default: all)

Some 10 MiB a program; they are not kept in the repository. Default folder:
$XDG_CACHE_HOME/symbiont/traces, or the same in ~/.cache. --continuous: one window of so many million
instructions each, in the folder `continuous` there, for schedulers that are simulated cycle by
cycle (Settle et al.): some 0.5 MiB and 1 s per million, which is said before it starts. Where the installed
version of a program is not the one whose profile is in profiles/, its profile is
made anew beside the trace. Needs `make build`, Debian's qemu-user and the packages
of each program; one whose packages are missing is named and left out (exit code 1).
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from profiles import ENVIRONMENT, ROOT, arguments, each, heed_signals, observe, prepared

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")


def is_of(profile, symbiont, executable):
    """Is the profile of this very executable?"""
    if not profile.exists() or not executable:
        return False
    show = [symbiont, "profile", "--show", profile, "--json"]
    done = subprocess.run(show, check=True, capture_output=True, text=True)
    with open(executable, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return json.loads(done.stdout)["digest"] == digest


def main():
    heed_signals()
    what = "one window of so many million instructions"
    more = lambda parser: parser.add_argument("--continuous", type=int, metavar="MILLIONS", help=what)
    programs, options = arguments(__doc__, CACHE / "symbiont/traces", more)
    kind = []
    if length := options.continuous:
        kind = ["--continuous", str(length * 1_000_000)]
        options.out /= "continuous"
        options.out.mkdir(exist_ok=True)
        each_mib, each_s = 0.5 * length, 100
        print(f"about {len(programs) * each_mib:.0f} MiB and {len(programs) * each_s / 60:.0f} minutes")

    def make(program):
        name, seconds = program["name"], 0.0
        trace = options.out / f"{name}.trace"
        with prepared(program) as folder:
            found = shutil.which(program["command"][0], path=ENVIRONMENT["PATH"])
            executable = folder / program["command"][0] if program.get("source") else found
            profile = ROOT / "profiles" / f"{name}.profile"
            if not is_of(profile, options.symbiont, executable):
                profile = options.out / f"{name}.profile"
                seconds = observe(program, options.symbiont, folder, profile)
            seconds += observe(program, options.symbiont, folder, trace, "--trace", profile, *kind)
        return trace, seconds

    each(programs, make)


if __name__ == "__main__":
    main()
