// Does as rounds.c does.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createInterface } = require('readline');

function computed() {
  let x = 1;
  for (let round = 0; round < 1000000; round++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
  }
  return x;
}

function begin(end, first) {
  return new Promise(begun => {
    const worker = new Worker(__filename, { workerData: { end, first } });
    worker.on('message', begun);
    worker.on('error', () => process.exit(1));
  });
}

async function main() {
  const first = computed();
  const end = new Int32Array(new SharedArrayBuffer(4));
  let count = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const wanted = Number(line);
    if (wanted === 0) {
      break;
    }
    const begun = [];
    for (; count < wanted; count++) {
      begun.push(begin(end, first));
    }
    await Promise.all(begun);
    console.log(count);
  }
  // The workers end, and with them the process.
  Atomics.store(end, 0, 1);
  console.log(`${count} ${first >>> 0}`);
}

if (isMainThread) {
  main();
} else {
  const { end, first } = workerData;
  parentPort.postMessage('begun');
  while (Atomics.load(end, 0) === 0) {
    if (computed() !== first) {
      throw new Error('computed something else');
    }
  }
}
