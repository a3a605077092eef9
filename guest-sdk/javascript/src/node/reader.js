// The thread that reads bodies. The messages name no URL: its path is a secret of the step.

import http from "node:http";
import { workerData } from "node:worker_threads";

const { signal, port } = workerData;

port.on("message", async ({ url, offset, length }) => {
  try {
    const body = await get(url, offset, length);
    port.postMessage({ body }, [body.buffer]);
  } catch (error) {
    port.postMessage({ problem: error.message });
  }
  Atomics.store(signal, 0, 1);
  Atomics.notify(signal, 0);
});

function get(url, offset, length) {
  const headers = { range: `bytes=${offset}-${offset + length - 1}`, "accept-encoding": "identity" };
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers }, (answer) => {
      const { statusCode: status } = answer;
      if (status !== 200 && status !== 206) {
        answer.destroy();
        reject(new Error(`the object endpoint answered ${status}`));
        return;
      }
      // A server may ignore `Range`, and give the whole object.
      let skip = status === 200 ? offset : 0;
      const body = new Uint8Array(length);
      let filled = 0;
      answer.on("data", (piece) => {
        const skipped = Math.min(skip, piece.length);
        skip -= skipped;
        const wanted = piece.subarray(skipped, skipped + length - filled);
        body.set(wanted, filled);
        filled += wanted.length;
      });
      answer.on("error", () => reject(new Error("the object endpoint broke off")));
      answer.on("end", () => {
        const short = `the object ended after ${filled} of ${length} bytes`;
        filled === length ? resolve(body) : reject(new Error(short));
      });
    });
    request.on("error", () => reject(new Error("the object endpoint cannot be reached")));
  });
}
