import { Decision, Event, HandlerClass, Kind, Output } from "./index.js";

/** What a handler decides on a log of these events. */
export function decide(handler: HandlerClass, log: Iterable<Output>): Promise<Decision>;

/** The event that an output becomes in the log. Its hash is empty. */
export function event(position: number, kind: Kind, output: Output): Event;
