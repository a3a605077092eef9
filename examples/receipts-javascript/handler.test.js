import assert from "node:assert/strict";
import { test } from "node:test";

import { Output } from "pugmark";
import { decide } from "pugmark/testing";

import Receipts from "./handler.js";

const image = (width, height) => {
  const bytes = new Uint8Array(2000);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  new DataView(bytes.buffer).setUint32(16, width);
  new DataView(bytes.buffer).setUint32(20, height);
  return Output.bytes(bytes, { name: "lunch", contentType: "image/png" });
};
const json = (output) => JSON.parse(new TextDecoder().decode(output.body));

test("looks at a receipt, waits, and books it", async () => {
  const log = [image(640, 480)];
  const [seen] = (await decide(Receipts, log)).outputs;
  assert.deepEqual(json(seen), { kind: "seen", receipt: "lunch", width: 640, height: 480 });

  log.push(seen);
  const wait = await decide(Receipts, log);
  assert.deepEqual(wait.next, {
    kind: "sleep",
    milliseconds: 86_400_000,
    reason: "waiting for approval of lunch",
  });

  log.push(Output.json({ kind: "approve", receipt: "lunch", cents: 1250 }));
  const [booking] = (await decide(Receipts, log)).outputs;
  assert.deepEqual([...booking.body], [0, 0, 0, 0, 0, 0, 4, 226, 0, 0, 0, 5, 0, 0, 0, 0]);

  log.push(booking);
  assert.equal((await decide(Receipts, log)).next.reason, "no receipts to approve");
});
