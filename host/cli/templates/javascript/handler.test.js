import assert from "node:assert/strict";
import { test } from "node:test";

import { Output } from "pugmark";
import { decide } from "pugmark/testing";

import Echo from "./handler.js";

test("answers_an_input_once", async () => {
  const log = [Output.json({ kind: "input", text: "hello" })];
  const { outputs } = await decide(Echo, log);
  const bodies = outputs.map(({ body }) => JSON.parse(new TextDecoder().decode(body)));
  assert.deepEqual(bodies, [{ kind: "echo", text: "HELLO" }]);

  log.push(...outputs);
  assert.equal((await decide(Echo, log)).next.reason, "nothing to echo");
});
