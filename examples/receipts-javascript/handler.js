// Books the receipts that are pushed to it as PNG images, once a human has approved them.
//
//   pugmark push receipt.png --name lunch
//   pugmark run -- node handler.js              # or: pugmark build, pugmark run -- receipts.wasm
//   echo '{"kind":"approve","receipt":"lunch","cents":1250}' | pugmark push
//
// It looks at an image once, reminds twice and then waits: a day apart, or what the session's metadata
// say (`pugmark start --meta remind-after-seconds=3600`). What is approved becomes a record of 16
// bytes, for the program that keeps the books.

import { BodyError, Output, append, log, main, pause, session, sleep } from "pugmark";

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const REMINDERS = 2;

export default class Receipts {
  /** Receipts that nothing was said of yet, by name. */
  unseen = new Map();
  /** Receipts that wait for a human: their names, and how often somebody was reminded. */
  waiting = new Map();
  /** What was approved and is not booked yet. */
  approved = [];
  /** Whether a sleep has ended since something was appended. */
  awake = false;

  fold(event) {
    if (event.kind === "wake") {
      this.awake = true;
      return;
    }
    if (event.contentType === "image/png") {
      this.unseen.set(event.name, event);
      return;
    }
    const note = noteOf(event);
    switch (note?.kind) {
      case "seen":
        this.unseen.delete(note.receipt);
        if (note.width !== undefined) {
          this.waiting.set(note.receipt, 0);
        }
        break;
      case "reminder":
        this.awake = false;
        for (const receipt of note.receipts) {
          this.waiting.set(receipt, this.waiting.get(receipt) + 1);
        }
        break;
      case "approve":
        if (this.waiting.delete(note.receipt)) {
          this.approved.push(note);
        }
        break;
    }
    if (event.contentType === "application/vnd.example.booking") {
      this.approved.shift();
    }
  }

  decide() {
    if (this.approved.length > 0) {
      return append(booking(this.approved[0]));
    }
    const seen = [...this.unseen].map(([receipt, image]) => ({ kind: "seen", receipt, ...size(image) }));
    if (seen.length > 0) {
      return append(...seen.map((note) => Output.json(note, { name: note.receipt })));
    }
    const open = [...this.waiting].filter(([, reminders]) => reminders < REMINDERS);
    const receipts = open.map(([receipt]) => receipt).sort();
    if (receipts.length === 0) {
      return pause(this.waiting.size > 0 ? "nobody answers" : "no receipts to approve");
    }
    if (this.awake) {
      return append(Output.json({ kind: "reminder", receipts }));
    }
    const seconds = Number(session().metadata["remind-after-seconds"] ?? 86_400);
    return sleep({ seconds }, `waiting for approval of ${receipts.join(", ")}`);
  }
}

// The event's JSON body; of others, which a session may hold as well, nothing.
function noteOf(event) {
  try {
    return event.json();
  } catch (error) {
    if (error instanceof BodyError) {
      return undefined;
    }
    throw error;
  }
}

// Width and height stand at the beginning of an image, however large it is.
function size(image) {
  const head = image.readAt(0, 24);
  if (head.length < 24 || SIGNATURE.some((byte, at) => head[at] !== byte)) {
    log.warn(`${image.name} is no PNG image`);
    return { problem: "no PNG image" };
  }
  const view = new DataView(head.buffer, head.byteOffset);
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function booking({ receipt, cents }) {
  const record = new DataView(new ArrayBuffer(16));
  record.setBigUint64(0, BigInt(cents));
  record.setUint32(8, new TextEncoder().encode(receipt).length);
  const contentType = "application/vnd.example.booking";
  return Output.bytes(new Uint8Array(record.buffer), { name: receipt, contentType });
}

main(import.meta, Receipts);
