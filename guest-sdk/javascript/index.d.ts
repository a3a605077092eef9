/** Where a module's `import.meta` says it is. */
interface Meta {
  url: string;
  main?: boolean;
}

/** Free names and values. */
export type Metadata = Readonly<Record<string, string>>;

/**
 * A handler: a fold over the log, and a decision on what the fold came to. A step begins with a new
 * instance, so that it holds nothing that the log does not.
 */
export interface Handler {
  /**
   * Takes one event into the state. Called once for each event, in the order of the log. An event
   * that the handler does not understand is to be skipped: others may write to the session, too.
   */
  fold(event: Event): void | Promise<void>;
  /** Decides what comes next. Must not change the state: that comes from `fold` alone. */
  decide(): Decision | Output | Promise<Decision | Output>;
}

/** What a handler's module exports as default. */
export type HandlerClass = new () => Handler;

/**
 * Runs one step of `handler` as a subprocess if Node was started with this very module, and does
 * nothing otherwise: `main(import.meta, Agent)`. In the sandbox it does nothing either.
 */
export function main(meta: Meta, handler: HandlerClass): void;

/**
 * What kind of event it is: `push` is what was appended, from outside or by a handler; `wake` ends a
 * sleep; `start` stands for the log of a session that has none yet; `fork` begins a fork's own
 * history, on request only; `other` is a kind from a later version, to be skipped.
 */
export type Kind = "push" | "wake" | "start" | "fork" | "other";

/** One event of the log. */
export class Event {
  private constructor();
  /** Where it stands in the log, from 0. Ascending, with gaps: pauses are not sent. */
  readonly position: number;
  readonly kind: Kind;
  /** `sha256:` and 64 hexadecimal digits, of the body. Empty for an event that a test made. */
  readonly hash: string;
  /** The body's length in bytes. */
  readonly size: number;
  /** Several events may share a name. */
  readonly name: string | undefined;
  readonly contentType: string | undefined;
  /** How the body is encoded, `gzip` for example; undefined if it is not. */
  readonly contentEncoding: string | undefined;
  readonly schemaUrl: string | undefined;
  readonly metadata: Metadata;
  /**
   * The whole body as it was stored, read at the first call and kept. The step ends if it cannot be
   * read.
   */
  bytes(): Uint8Array;
  /** The whole body as text. Throws a {@link BodyError} if it is encoded, or not UTF-8. */
  text(): string;
  /** The whole body as JSON. Throws a {@link BodyError} if it is encoded, or no JSON. */
  json<T = unknown>(): T;
  /** Up to `length` bytes from `offset`: fewer at the body's end, none past it. Nothing is kept. */
  readAt(offset: number, length: number): Uint8Array;
  /** The body from its start, in pieces of `length` bytes: for those too large to be held. */
  pieces(length?: number): Generator<Uint8Array, void, void>;
}

/** A body is there, but is not what was asked for. */
export class BodyError extends Error {
  private constructor();
  /** Where the event stands in the log. */
  readonly position: number;
}

/** What describes an output. What is left out is not set. */
export interface OutputOptions {
  name?: string;
  /** In place of the one that the constructor chose. */
  contentType?: string;
  /** Says how the body *is* encoded; encodes nothing. */
  contentEncoding?: string;
  schemaUrl?: string;
  metadata?: Metadata;
  /** The id of another session that it goes to. */
  session?: string;
  /** Whether it is the seed of a new child of this session. */
  fork?: boolean;
}

/** One event that the handler appends. */
export class Output {
  private constructor();
  /** A JSON body. Throws if the value has no JSON form. */
  static json(value: unknown, options?: OutputOptions): Output;
  /** A plain text body. */
  static text(body: string, options?: OutputOptions): Output;
  /** A body of any bytes. */
  static bytes(body: Uint8Array, options?: OutputOptions): Output;
  readonly body: Uint8Array;
  readonly name: string | undefined;
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly schemaUrl: string | undefined;
  readonly metadata: Metadata;
  readonly session: string | undefined;
  readonly fork: boolean;
}

/** A time to wait: the sum of its parts, rounded up to whole milliseconds. */
export interface Duration {
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
  milliseconds?: number;
}

/** What happens after the outputs are committed. */
export type Next =
  | { readonly kind: "continue" }
  | { readonly kind: "pause"; readonly reason: string }
  | { readonly kind: "sleep"; readonly milliseconds: number; readonly reason: string };

/** What a step comes to: outputs, committed together, and what happens next. */
export class Decision {
  private constructor();
  readonly outputs: readonly Output[];
  readonly next: Next;
  /** Why the step fails, if it does. */
  readonly failure: string | undefined;
  /** Appends more events, after those that are there. */
  and(...outputs: Output[]): Decision;
  /** Rests after the outputs, until something is pushed. */
  thenPause(reason: string): Decision;
  /** Rests after the outputs, until `duration` has passed or something is pushed. */
  thenSleep(duration: Duration, reason: string): Decision;
}

/** Appends events; then the handler is called again. */
export function append(...outputs: Output[]): Decision;
/** Adds nothing to the log, which ends the turn: the session rests until something is pushed. */
export function nothing(): Decision;
/** Rests until something is pushed. */
export function pause(reason: string): Decision;
/** Rests until `duration` has passed or something is pushed. */
export function sleep(duration: Duration, reason: string): Decision;
/** Fails the step: nothing is committed, and the reason is shown to who runs it. */
export function fail(reason: string): Decision;

/** The session that a step belongs to. */
export interface Session {
  readonly id: string;
  /** The handler's name. */
  readonly agent: string;
  /**
   * Version of the snapshot that the step began on; in the sandbox 0 in `fold`, since what an event
   * is folded into does not depend on the step that folds it.
   */
  readonly snapshot: number;
  /** From the session's manifest. */
  readonly metadata: Metadata;
}

/** The session that the step belongs to. */
export function session(): Session;

/** Diagnostics, for the person who runs the step. Never recorded, never seen by a handler. */
export namespace log {
  function debug(message: unknown): void;
  function info(message: unknown): void;
  function warn(message: unknown): void;
  function error(message: unknown): void;
}

/** The content type of the record that ends a handler's turn. */
export const PAUSE_CONTENT_TYPE: string;
