// One event of the log.

import { readObject } from "#platform";

const KINDS = new Set(["push", "wake", "start", "fork"]);
const PIECE_LENGTH = 256 * 1024;

export class BodyError extends Error {
  constructor(position, problem, options) {
    super(`the body of event ${position} ${problem}`, options);
    this.name = "BodyError";
    this.position = position;
  }
}

export class Event {
  // Where a body that did not come along is read: a hash in the sandbox, else a URL.
  #location;
  #body;

  constructor(fields, location, body) {
    this.position = fields.position;
    this.kind = KINDS.has(fields.event) ? fields.event : "other";
    this.hash = fields.hash;
    this.size = fields.size;
    this.name = fields.name;
    this.contentType = fields.contentType;
    this.contentEncoding = fields.contentEncoding;
    this.schemaUrl = fields.schemaUrl;
    this.metadata = fields.metadata;
    this.#location = location;
    this.#body = body;
  }

  bytes() {
    this.#body ??= readObject(this.#location, 0, this.size);
    return this.#body;
  }

  text() {
    this.#refuseEncoded();
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes());
    } catch (cause) {
      if (cause instanceof TypeError) {
        throw new BodyError(this.position, "is not UTF-8", { cause });
      }
      throw cause;
    }
  }

  json() {
    const text = this.text();
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new BodyError(this.position, "is not JSON", { cause });
    }
  }

  readAt(offset, length) {
    const end = Math.min(this.size, offset + length);
    if (offset >= end) {
      return new Uint8Array();
    }
    return this.#body?.slice(offset, end) ?? readObject(this.#location, offset, end - offset);
  }

  *pieces(length = PIECE_LENGTH) {
    for (let offset = 0; offset < this.size; offset += length) {
      yield this.readAt(offset, length);
    }
  }

  #refuseEncoded() {
    if (this.contentEncoding !== undefined && this.contentEncoding !== "identity") {
      throw new BodyError(this.position, `is encoded as ${this.contentEncoding}`);
    }
  }
}
