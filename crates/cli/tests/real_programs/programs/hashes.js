// Worker threads that hash for a while; prints the same each time.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash } = require('crypto');

if (isMainThread) {
  const chains = [0, 1, 2, 3].map(seed => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: seed });
    worker.on('message', resolve);
    worker.on('error', reject);
  }));
  Promise.all(chains).then(digests => {
    digests.forEach(digest => console.log(digest));
    console.error('done');
    process.exitCode = 5;
  });
} else {
  let digest = String(workerData);
  for (let round = 0; round < 60000; round++) {
    digest = createHash('sha256').update(digest).digest('hex');
  }
  parentPort.postMessage(digest);
}
