// For a handler's own tests: steps without a runtime.

import { Decision } from "./decision.js";
import { Event } from "./event.js";
import { handlerClass } from "./handler.js";

export async function decide(Handler, log) {
  const handler = new (handlerClass(Handler))();
  let position = 0;
  for (const output of log) {
    await handler.fold(event(position, "push", output));
    position += 1;
  }
  return Decision.of(await handler.decide());
}

export function event(position, kind, output) {
  const { body, name, contentType, contentEncoding, schemaUrl, metadata } = output;
  const described = { name, contentType, contentEncoding, schemaUrl, metadata };
  const fields = { position, event: kind, hash: "", size: body.length, ...described };
  return new Event(fields, "", body);
}
