// Does what the last event says, and appends what it saw: all that JavaScript has and that could
// tell one run from another.

import { Output, append, log, main, nothing, session } from "pugmark";
import type { Decision, Event, Handler } from "pugmark";

import { failing } from "./failing.js";

interface Request {
  do: string;
  session?: string;
  url?: string;
}

const built = { now: Date.now(), zone: new Date().getTimezoneOffset() };

export default class Probe implements Handler {
  request: Request = { do: "nothing" };
  folded: unknown[] = [];

  fold(event: Event): void {
    if (event.contentType !== "application/json") {
      return;
    }
    this.request = event.json<Request>();
    if (this.request.do === "see") {
      this.folded.push([event.position, Date.now(), Math.random(), session().snapshot]);
    }
  }

  async decide(): Promise<Decision> {
    const { do: what, session: other, url } = this.request;
    switch (what) {
      case "see":
        return append(Output.json({ built, folded: this.folded, ...(await seen()) })).thenPause("seen");
      case "fail":
        return failing(this.request);
      case "fork":
        return append(Output.json({ do: "nothing" }, { fork: true })).thenPause("forked");
      case "send":
        return append(Output.text("hello", { session: other!, name: "greeting" })).thenPause("sent");
      case "fetch":
        return append(await fetched(url!)).thenPause("fetched");
      default:
        log.info("nothing to do");
        return nothing();
    }
  }
}

async function fetched(url: string): Promise<Output> {
  try {
    const answer = await fetch(url, { method: "POST", body: "ping" });
    return Output.json({ status: answer.status, text: await answer.text() });
  } catch (error) {
    return Output.json({ denied: error instanceof Error });
  }
}

// What this version of the language's types does not know of, or only some engines have.
const engine = globalThis as unknown as Record<string, unknown>;

async function seen(): Promise<object> {
  const order: string[] = [];
  const timers = [5, 1, 3].map((ms) => {
    return new Promise<void>((done) => setTimeout(() => (order.push(`${ms} ms`), done()), ms));
  });
  queueMicrotask(() => order.push("microtask"));
  void Promise.resolve().then(() => order.push("promise"));
  await Promise.all(timers);
  const random = [Math.random(), Math.random(), crypto.randomUUID()];
  const bytes = [...crypto.getRandomValues(new Uint8Array(4))];
  return {
    session: session(),
    now: Date.now(),
    performance: [performance.timeOrigin, performance.now()],
    random,
    bytes,
    order,
    local: [new Date(0).toString(), new Date(0).toLocaleString(), (1234.5).toLocaleString()],
    sorted: ["z", "ä", "a"].sort((a, b) => a.localeCompare(b)),
    keys: [...new Set([3, 1, 2]), ...Object.keys({ b: 1, a: 2, 1: 3 })],
    intl: typeof engine.Intl,
    process: typeof engine.process,
    globals: Object.getOwnPropertyNames(globalThis),
  };
}

main(import.meta, Probe);
