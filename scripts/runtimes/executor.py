"""CPython: what ProcessPoolExecutor sizes itself by, and what its workers count."""
import json, os, sys, time
from concurrent.futures import ProcessPoolExecutor

def count():
    return os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))

def say(phase, of, count):
    print(json.dumps({"phase": phase, "of": of, "count": count}), flush=True)

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
    return count()

def main(serial, parallel):
    say("start", "process_cpu_count", count())
    end = time.monotonic() + serial
    while (left := end - time.monotonic()) > 0:
        say("serial", "process_cpu_count", spin(min(left, 1)))
    say("parallel", "process_cpu_count", count())
    with ProcessPoolExecutor() as pool:
        say("parallel", "workers", pool._max_workers)
        for counted in pool.map(spin, [parallel / 2] * 2 * pool._max_workers):
            say("parallel", "process_cpu_count in a worker", counted)
    say("end", "process_cpu_count", count())

if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
