// The lines of standard input and output (`docs/handler-protocol.md`).

import { Buffer } from "node:buffer";

import { Event } from "../event.js";
import { PAUSE_CONTENT_TYPE } from "../output.js";

// The event of a line; undefined for one that holds no event of the log. `count` events came before
// it, which is its position where the line does not name one.
export function read(text, count) {
  if (text.trim() === "") {
    return undefined;
  }
  const line = JSON.parse(text);
  // Names a namespace of objects, and has no body.
  if (line.event === "memory") {
    return undefined;
  }
  const fields = {
    position: line.position ?? count,
    event: line.event,
    hash: line.hash ?? "",
    size: line.size ?? 0,
    name: line.name || undefined,
    contentType: line["content-type"] || undefined,
    contentEncoding: line["content-encoding"] || undefined,
    schemaUrl: line["schema-url"] || undefined,
    metadata: line.metadata ?? {},
  };
  const data = typeof line.data === "string" ? bytes(line.data) : undefined;
  if (data !== undefined && data.length !== fields.size) {
    throw new Error(`data is ${data.length} bytes long, and size says ${fields.size}`);
  }
  return new Event(fields, line.url ?? "", data);
}

function bytes(base64) {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

// All lines of a decision.
export function write({ outputs, next }) {
  const lines = outputs.map(line);
  if (next.kind !== "continue") {
    lines.push(control(next));
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

function line({ body, name, contentType, contentEncoding, schemaUrl, metadata, session, fork }) {
  return {
    data: base64(body),
    name,
    "content-type": contentType,
    "content-encoding": contentEncoding,
    "schema-url": schemaUrl,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    session,
    fork: fork || undefined,
  };
}

function control({ reason, milliseconds }) {
  return {
    data: base64(Buffer.from(reason)),
    "content-type": PAUSE_CONTENT_TYPE,
    metadata: milliseconds === undefined ? undefined : { duration: duration(milliseconds) },
  };
}

// As the sandbox's host spells it, so that both write the same.
function duration(milliseconds) {
  if (milliseconds > 0 && milliseconds < 1000) {
    return `${milliseconds}ms`;
  }
  const minutes = Math.floor(milliseconds / 60_000);
  const hours = minutes >= 60 ? `${Math.floor(minutes / 60)}h` : "";
  return `${hours}${minutes > 0 ? `${minutes % 60}m` : ""}${(milliseconds % 60_000) / 1000}s`;
}

function base64(body) {
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString("base64");
}
