// A handler class as the interface `step` of the typed world.

import { Event } from "../event.js";
import { Refusal, decide, handlerClass } from "../handler.js";
import { log } from "./platform.js";
import { begin } from "./prelude.js";
import { located, mapped } from "./stack.js";

export function steps(module) {
  const Handler = handlerClass(module.default);
  let instance;
  const handler = () => {
    begin();
    instance ??= new Handler();
    return instance;
  };
  return {
    async fold(entry) {
      try {
        await handler().fold(event(entry));
      } catch (error) {
        throw refused(error);
      }
    },
    async decide() {
      try {
        return sent(await decide(handler()));
      } catch (error) {
        throw refused(error);
      }
    },
  };
}

function event(entry) {
  const { event, hash, name, contentType, contentEncoding, schemaUrl, metadata, data } = entry;
  const fields = {
    position: Number(entry.position),
    event,
    hash,
    size: Number(entry.size),
    name,
    contentType,
    contentEncoding,
    schemaUrl,
    metadata: Object.fromEntries(metadata),
  };
  return new Event(fields, hash, data);
}

function sent({ outputs, next }) {
  return { outputs: outputs.map(output), next: settled(next), extra: [] };
}

function output({ body, name, contentType, contentEncoding, schemaUrl, metadata, session, fork }) {
  const extra = [];
  if (session !== undefined) {
    extra.push(["session", session]);
  }
  if (fork) {
    extra.push(["fork", "true"]);
  }
  const described = { name, contentType, contentEncoding, schemaUrl };
  return { data: body, ...described, metadata: Object.entries(metadata), extra };
}

function settled({ kind, reason, milliseconds }) {
  switch (kind) {
    case "pause":
      return { tag: "pause", val: reason };
    case "sleep":
      return { tag: "sleep", val: { durationMs: BigInt(milliseconds), reason } };
    default:
      return { tag: "continue" };
  }
}

// What ends the step: a string, which the bindings take for the error of a result.
function refused(error) {
  if (error instanceof Refusal) {
    return error.message;
  }
  if (!(error instanceof Error)) {
    return String(error);
  }
  const stack = mapped(error.stack ?? "");
  log("error", [String(error), ...stack.map((frame) => `    at ${frame}`)].join("\n"));
  if (error.cause !== undefined) {
    log("error", `caused by ${error.cause}`);
  }
  return located(error, stack);
}
