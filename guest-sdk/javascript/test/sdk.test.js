import assert from "node:assert/strict";
import { test } from "node:test";

import { BodyError, Output, append, fail, nothing, pause, sleep } from "pugmark";
import { decide, event } from "pugmark/testing";

import { located, mapped } from "../src/component/stack.js";
import { read, write } from "../src/node/wire.js";

class Counter {
  count = 0;
  fold(event) {
    this.count += event.json();
  }
  decide() {
    return this.count < 10 ? Output.json(this.count, { name: "sum" }) : pause("enough");
  }
}

test("a handler folds, then decides", async () => {
  const one = await decide(Counter, [Output.json(1), Output.json(2)]);
  assert.equal(new TextDecoder().decode(one.outputs[0].body), "3");
  assert.deepEqual((await decide(Counter, [Output.json(10)])).next, { kind: "pause", reason: "enough" });
});

test("reads pieces of a body", () => {
  const hello = event(7, "push", Output.text("hello"));
  assert.equal(hello.text(), "hello");
  assert.deepEqual([...hello.readAt(1, 3)], [...Buffer.from("ell")]);
  assert.equal(hello.readAt(5, 1).length, 0);
  assert.deepEqual([...hello.pieces(2)].map((piece) => piece.length), [2, 2, 1]);
});

test("says what is wrong with a body", () => {
  assert.throws(() => event(2, "push", Output.bytes(Uint8Array.of(255))).text(), {
    name: "BodyError",
    message: "the body of event 2 is not UTF-8",
  });
  assert.throws(() => event(3, "push", Output.text("{")).json(), /event 3 is not JSON/);
  const encoded = Output.text("1", { contentEncoding: "gzip" });
  assert.throws(() => event(4, "push", encoded).json(), BodyError);
});

test("refuses what is no output or decision", async () => {
  assert.throws(() => Output.json(undefined), /no JSON form/);
  assert.throws(() => Output.text("", { session: "a", fork: true }), /not to both/);
  assert.throws(() => Output.text("", { contentType: "application/vnd.pugmark.pause+text" }), /pause\(\)/);
  assert.throws(() => append("text"), /is an Output/);
  assert.throws(() => sleep({ weeks: 1 }, "x"), /no duration: weeks/);
  await assert.rejects(decide(class { fold() {} decide() {} }, []), /returned no decision/);
  await assert.rejects(decide({}, []), /a class with fold\(event\) and decide\(\)/);
});

test("golden lines", () => {
  const outputs = append(Output.text("A", { name: "seen", metadata: { b: "2", a: "1" } }));
  assert.equal(
    write(outputs.thenPause("enough")),
    '{"data":"QQ==","name":"seen","content-type":"text/plain","metadata":{"a":"1","b":"2"}}\n' +
      '{"data":"ZW5vdWdo","content-type":"application/vnd.pugmark.pause+text"}\n',
  );
  assert.equal(
    write(sleep({ seconds: 1.5, milliseconds: 0.001 }, "later")),
    '{"data":"bGF0ZXI=","content-type":"application/vnd.pugmark.pause+text","metadata":{"duration":"1.501s"}}\n',
  );
  for (const [milliseconds, text] of [
    [0, "0s"],
    [250, "250ms"],
    [90_500, "1m30.5s"],
    [86_400_000, "24h0m0s"],
  ]) {
    assert.ok(write(sleep({ milliseconds }, "later")).includes(`{"duration":"${text}"}`), text);
  }
  assert.equal(
    write(append(Output.bytes(new Uint8Array(), { fork: true }))),
    '{"data":"","content-type":"application/octet-stream","fork":true}\n',
  );
  assert.equal(write(nothing()), "");
  assert.equal(fail("no").failure, "no");
});

test("reads a line in full, and skips what is no event", () => {
  const line = '{"event":"dream","size":2,"position":3,"name":"","content-type":"c","metadata":{"a":"é"},"data":"QUI="}';
  const found = read(line, 0);
  assert.deepEqual(
    [found.position, found.kind, found.name, found.contentType, found.metadata.a, found.text()],
    [3, "other", undefined, "c", "é", "AB"],
  );
  assert.equal(read(' \r', 0), undefined);
  assert.equal(read('{"event":"memory","url":"http://h/m/"}', 0), undefined);
  assert.throws(() => read('{"event":"push","size":2,"data":"QQ=="}', 0), /size says 2/);
});

test("a stack names the sources", () => {
  // Of a.js, line 3 column 5 at the bundle's 1:1; of the SDK at 1:11.
  globalThis[Symbol.for("pugmark.sources")] = { names: ["a.js", "pugmark/x.js"], mappings: "AAEI,UCFJ" };
  const frames = mapped("f@handler.js:1:4\nasync*g@handler.js:1:12\nh@/pugmark/init.js:1:1\n");
  assert.deepEqual(frames, ["f (a.js:3:5)"]);
  assert.equal(located(new TypeError("x"), frames), "TypeError: x (a.js:3:5)");
  assert.equal(located(new TypeError("x"), []), "TypeError: x");
});
