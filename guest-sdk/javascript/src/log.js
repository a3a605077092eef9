// Diagnostics, for the person who runs the step. Never recorded, and never seen by a handler.

import { log } from "#platform";

export const debug = (message) => log("debug", String(message));
export const info = (message) => log("info", String(message));
export const warn = (message) => log("warn", String(message));
export const error = (message) => log("error", String(message));
