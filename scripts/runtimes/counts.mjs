// Node: os.availableParallelism, in the main thread and in the workers that are started by it.
import os from 'node:os';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

const say = (phase) => console.log(JSON.stringify({ phase, of: 'availableParallelism', count: os.availableParallelism() }));
const spin = (milliseconds) => { for (const end = Date.now() + milliseconds; Date.now() < end;); };

if (isMainThread) {
  const [serial, parallel] = process.argv.slice(2).map((seconds) => 1000 * seconds);
  say('start');
  for (const end = Date.now() + serial; Date.now() < end;) {
    spin(Math.min(1000, end - Date.now()));
    say('serial');
  }
  say('parallel');
  const workers = Array.from({ length: os.availableParallelism() }, () => new Worker(new URL(import.meta.url), { workerData: parallel }));
  console.log(JSON.stringify({ phase: 'parallel', of: 'workers', count: workers.length }));
  await Promise.all(workers.map((worker) => new Promise((done) => worker.on('exit', done))));
  say('end');
} else {
  say('parallel');
  spin(workerData);
}
