// The SDK as a subprocess of Node: the log on standard input, bodies over HTTP, the session in the
// environment.

import process from "node:process";

export { main } from "./main.js";
export { readObject } from "./objects.js";

// In the sandbox there is no other time zone.
process.env.TZ = "UTC";

export function session() {
  const variable = (name) => process.env[`PUGMARK_${name}`] ?? "";
  const snapshot = Number(variable("SNAPSHOT") || "0");
  if (!Number.isSafeInteger(snapshot)) {
    throw new Error("PUGMARK_SNAPSHOT is no version");
  }
  const metadata = JSON.parse(variable("SESSION_METADATA") || "{}");
  return { id: variable("SESSION_ID"), agent: variable("AGENT_ID"), snapshot, metadata };
}

export function log(level, message) {
  process.stderr.write(`${level}: ${message}\n`);
}
