// What handlers import. Which platform it stands on is decided by the condition `pugmark`, which
// only a build for the sandbox sets; both have the same functions.

export { Decision, append, fail, nothing, pause, sleep } from "./decision.js";
export { BodyError, Event } from "./event.js";
export * as log from "./log.js";
export { Output, PAUSE_CONTENT_TYPE } from "./output.js";
export { main, session } from "#platform";
