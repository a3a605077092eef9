// What a step comes to: outputs, committed together, and what happens next.

import { Output } from "./output.js";

const MILLISECONDS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1_000, milliseconds: 1 };

export class Decision {
  constructor(outputs, next, failure) {
    for (const output of outputs) {
      if (!(output instanceof Output)) {
        throw new TypeError("what is appended is an Output");
      }
    }
    this.outputs = Object.freeze([...outputs]);
    this.next = Object.freeze(next);
    this.failure = failure;
    Object.freeze(this);
  }

  and(...outputs) {
    return new Decision([...this.outputs, ...outputs], this.next, this.failure);
  }

  thenPause(reason) {
    return new Decision(this.outputs, { kind: "pause", reason: String(reason) }, this.failure);
  }

  thenSleep(duration, reason) {
    const next = { kind: "sleep", milliseconds: toMilliseconds(duration), reason: String(reason) };
    return new Decision(this.outputs, next, this.failure);
  }

  // What a handler's `decide` returned, as a decision.
  static of(value) {
    if (value instanceof Output) {
      return append(value);
    }
    if (value instanceof Decision) {
      return value;
    }
    throw new TypeError("decide() returned no decision: `nothing()` is one that adds nothing");
  }
}

export const append = (...outputs) => new Decision(outputs, { kind: "continue" });
export const nothing = () => append();
export const pause = (reason) => nothing().thenPause(reason);
export const sleep = (duration, reason) => nothing().thenSleep(duration, reason);
export const fail = (reason) => new Decision([], { kind: "continue" }, String(reason));

// Whole milliseconds, rounded up so that nothing wakes early.
function toMilliseconds(duration) {
  let sum = 0;
  for (const [unit, count] of Object.entries(duration)) {
    if (!Object.hasOwn(MILLISECONDS, unit) || typeof count !== "number") {
      throw new TypeError(`no duration: ${unit}; it has ${Object.keys(MILLISECONDS).join(", ")}`);
    }
    sum += count * MILLISECONDS[unit];
  }
  const milliseconds = Math.ceil(sum);
  if (!Number.isSafeInteger(milliseconds) || milliseconds < 0) {
    throw new RangeError(`no duration: ${sum} milliseconds`);
  }
  return milliseconds;
}
