# Processes and threads of random short lives, some orphaned at once; sleeps
# and spins. The seed fixes what is started, the scheduler how long each lives.
import os
import random
import threading
import time

chance = random.Random(1)


def live(seconds, busy):
    end = time.monotonic() + seconds
    if not busy:
        time.sleep(seconds)
    while time.monotonic() < end:
        pass


def child(count):
    """A process with threads of its own."""
    lives = [(chance.uniform(0.02, 0.3), chance.random() < 0.2) for _ in range(count)]
    if pid := os.fork():
        return pid
    workers = [threading.Thread(target=live, args=each) for each in lives]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os._exit(0)


def orphan():
    """A grandchild whose parent ends at once."""
    seconds = chance.uniform(0.1, 0.3)
    if pid := os.fork():
        return pid
    if os.fork() == 0:
        live(seconds, False)
    os._exit(0)


for _ in range(12):
    own = threading.Thread(target=live, args=(chance.uniform(0.02, 0.2), False))
    children = [child(chance.randint(0, 3)) for _ in range(3)] + [orphan()]
    own.start()
    for pid in children:
        os.waitpid(pid, 0)
    own.join()
