// What a handler is, and how its two functions are called.

import { Decision } from "./decision.js";

// The class that a module exports, or what is wrong with it.
export function handlerClass(Handler) {
  const has = (name) => typeof Handler?.prototype?.[name] === "function";
  if (typeof Handler !== "function" || !has("fold") || !has("decide")) {
    throw new TypeError(
      "a handler is a class with fold(event) and decide(), exported as default",
    );
  }
  return Handler;
}

// What the handler decides; throws why the step fails.
export async function decide(handler) {
  const decision = Decision.of(await handler.decide());
  if (decision.failure !== undefined) {
    throw new Refusal(decision.failure);
  }
  return decision;
}

// A failure that the handler decided on: a reason, and no defect that a stack would explain.
export class Refusal extends Error {}
