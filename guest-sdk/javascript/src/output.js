// Events to be: a body and what describes it.

export const PAUSE_CONTENT_TYPE = "application/vnd.pugmark.pause+text";

const encoder = new TextEncoder();

export class Output {
  constructor(body, options = {}) {
    if (!(body instanceof Uint8Array)) {
      throw new TypeError("the body of an output is a Uint8Array");
    }
    const { name, contentType, contentEncoding, schemaUrl, metadata, session, fork } = options;
    if (contentType === PAUSE_CONTENT_TYPE) {
      throw new TypeError("an output is no pause: decide on pause() or sleep()");
    }
    if (session && fork) {
      throw new TypeError("an output goes to another session or to a fork, not to both");
    }
    this.body = body;
    this.name = text("name", name);
    this.contentType = text("contentType", contentType);
    this.contentEncoding = text("contentEncoding", contentEncoding);
    this.schemaUrl = text("schemaUrl", schemaUrl);
    this.metadata = sorted(metadata);
    this.session = text("session", session);
    this.fork = fork === true;
    Object.freeze(this);
  }

  static json(value, options) {
    const body = JSON.stringify(value);
    if (body === undefined) {
      throw new TypeError(`an output has no JSON form: it is of type ${typeof value}`);
    }
    return new Output(encoder.encode(body), { contentType: "application/json", ...options });
  }

  static text(body, options) {
    return new Output(encoder.encode(body), { contentType: "text/plain", ...options });
  }

  static bytes(body, options) {
    return new Output(body, { contentType: "application/octet-stream", ...options });
  }
}

// Empty is as left out.
function text(field, value) {
  if (value === undefined || value === null || value === "") {
    return undefined;
  }
  if (typeof value !== "string") {
    throw new TypeError(`an output's ${field} is a string`);
  }
  return value;
}

function sorted(metadata) {
  const entries = Object.entries(metadata ?? {});
  for (const [name, value] of entries) {
    if (typeof value !== "string") {
      throw new TypeError(`an output's metadata are strings; \`${name}\` is none`);
    }
  }
  return Object.freeze(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))));
}
