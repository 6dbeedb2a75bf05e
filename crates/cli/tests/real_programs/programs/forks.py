# Runs a command several times, each time once it finds itself pinned or has
# run for so many seconds:
#   forks.py TIMES SECONDS STOP_FILE COMMAND...
# Writes a JSON line for each, and the stop file at the end.
import os

# Before anything else, for an import takes long enough to be pinned meanwhile.
at_first = len(os.sched_getaffinity(0))

import json
import random
import subprocess
import sys
import threading
import time

times, seconds = int(sys.argv[1]), float(sys.argv[2])
stop, command = sys.argv[3], sys.argv[4:]
chance = random.Random(1)


def is_pinned():
    return len(os.sched_getaffinity(0)) < at_first


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


give_up = time.monotonic() + 25
try:
    for _ in range(times):
        pinned, deadline = False, time.monotonic() + seconds
        while not pinned and time.monotonic() < deadline:
            while not is_pinned() and time.monotonic() < deadline:
                spin(0.001)
            # Now at any moment of the quantum; it may be released meanwhile.
            spin(chance.uniform(0, 0.02))
            pinned = is_pinned()
        at = time.monotonic_ns()
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        report = {
            "thread": threading.get_native_id(),
            "at": at,
            "pinned": pinned,
            "wrote": child.stdout.decode(),
        }
        print(json.dumps(report), flush=True)
        if time.monotonic() > give_up:
            break
finally:
    open(stop, "w").close()
