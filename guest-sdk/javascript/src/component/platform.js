// The SDK in the sandbox: the imports of the typed world.

import { get } from "pugmark:handler/session@0.1.0";
import { log as hostLog } from "pugmark:handler/log@0.1.0";
import { read } from "pugmark:handler/objects@0.1.0";

import { inStep } from "./prelude.js";

// Bytes that are asked for in one call.
const PIECE_LENGTH = 256 * 1024;

// Exactly `length` bytes from `offset`, which the object has.
export function readObject(hash, offset, length) {
  const body = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const wanted = Math.min(length - filled, PIECE_LENGTH);
    const piece = read(hash, BigInt(offset + filled), wanted);
    if (piece.length === 0) {
      throw new Error(`${hash} is shorter than its entry says`);
    }
    body.set(piece, filled);
    filled += piece.length;
  }
  return body;
}

export function session() {
  inStep("session()");
  const { id, agent, snapshot, metadata } = get();
  return { id, agent, snapshot: Number(snapshot), metadata: Object.fromEntries(metadata) };
}

export function log(level, message) {
  inStep("log");
  hostLog(level, message);
}

// There is no main: the step is driven through the component's exports.
export function main() {}
