// Bodies from the runtime's loopback endpoint, read while the caller waits: a handler's functions
// are the same in the sandbox, where a body is there at once. A thread does the requests.

import { MessageChannel, Worker, receiveMessageOnPort } from "node:worker_threads";

let reader;

// Exactly `length` bytes from `offset`, which the object has.
export function readObject(url, offset, length) {
  reader ??= start();
  Atomics.store(reader.signal, 0, 0);
  reader.port.postMessage({ url, offset, length });
  Atomics.wait(reader.signal, 0, 0);
  const { body, problem } = receiveMessageOnPort(reader.port).message;
  if (problem !== undefined) {
    throw new Error(problem);
  }
  return body;
}

function start() {
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const { port1: port, port2: theirs } = new MessageChannel();
  const worker = new Worker(new URL("./reader.js", import.meta.url), {
    workerData: { signal, port: theirs },
    transferList: [theirs],
  });
  worker.unref();
  port.unref();
  return { signal, port };
}
