# Processes and threads that hash for a while; prints the same each time.
import hashlib
import multiprocessing
import sys
import threading


def chain(seed, rounds=60_000):
    digest = str(seed).encode()
    for _ in range(rounds):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def threads():
    # Long inputs are hashed without the interpreter's lock: in parallel.
    results = [None] * 4

    def work(index):
        block = bytes([index]) * (1 << 20)
        state = hashlib.sha256()
        for _ in range(40):
            state.update(block)
        results[index] = state.hexdigest()

    workers = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        for line in pool.map(chain, range(8)):
            print(line)
    for line in threads():
        print(line)
    print("done", file=sys.stderr)
    sys.exit(3)
