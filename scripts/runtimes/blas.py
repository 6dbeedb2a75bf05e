"""numpy: the threads of its OpenBLAS, which is loaded after the serial phase only."""
import json, os, sys, time

def say(phase, of, count):
    print(json.dumps({"phase": phase, "of": of, "count": count}), flush=True)

serial, parallel = map(float, sys.argv[1:])
say("start", "own mask", len(os.sched_getaffinity(0)))
end = time.monotonic() + serial
while time.monotonic() < end:
    sum(range(1000))
say("serial", "own mask", len(os.sched_getaffinity(0)))
import numpy, threadpoolctl
for library in threadpoolctl.threadpool_info():
    say("parallel", library["internal_api"], library["num_threads"])
matrix = numpy.ones((500, 500))
end = time.monotonic() + parallel
while time.monotonic() < end:
    matrix @ matrix
for library in threadpoolctl.threadpool_info():
    say("end", library["internal_api"], library["num_threads"])
say("end", "own mask", len(os.sched_getaffinity(0)))
