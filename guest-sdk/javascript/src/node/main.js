// One step as a subprocess. Nothing is written to standard output until the whole decision is there.

import console from "node:console";
import { realpathSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

import { Refusal, decide, handlerClass } from "../handler.js";
import { read, write } from "./wire.js";

export async function main(meta, Handler) {
  if (!isMain(meta)) {
    return;
  }
  // What is printed is for people: standard output is for the decision alone.
  globalThis.console = new console.Console(process.stderr, process.stderr);
  let code = 0;
  try {
    const answer = await step(handlerClass(Handler));
    await new Promise((done, failed) => {
      process.stdout.write(answer, (error) => (error ? failed(error) : done()));
    });
  } catch (error) {
    code = 1;
    const reason = error instanceof Refusal ? `error: ${error.message}` : (error?.stack ?? error);
    await new Promise((done) => process.stderr.write(`${reason}\n`, done));
  }
  // What the handler has begun and not awaited has no place in a step.
  process.exit(code);
}

async function step(Handler) {
  const handler = new Handler();
  let count = 0;
  for await (const line of lines(process.stdin)) {
    const event = read(line, count);
    if (event === undefined) {
      continue;
    }
    count += 1;
    const folded = handler.fold(event);
    if (folded !== undefined) {
      await folded;
    }
  }
  return write(await decide(handler));
}

// Lines end with a line feed only: JSON may hold other line breaks as they are.
async function* lines(input) {
  let rest = "";
  for await (const piece of input.setEncoding("utf8")) {
    const found = (rest + piece).split("\n");
    rest = found.pop();
    yield* found;
  }
  yield rest;
}

// Whether the module is what Node was started with, and not imported by a test.
function isMain(meta) {
  if (typeof meta.main === "boolean") {
    return meta.main;
  }
  const program = process.argv[1];
  return program !== undefined && realpathSync(program) === realpathSync(fileURLToPath(meta.url));
}
