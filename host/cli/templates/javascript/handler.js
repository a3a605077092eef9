// Answers each input with its text in capitals, then waits for the next one.

import { Output, append, main, pause } from "pugmark";

export default class Echo {
  unanswered = undefined;

  fold(event) {
    if (event.contentType !== "application/json") {
      return; // not for this handler
    }
    const { kind, text } = event.json();
    if (kind === "input") {
      this.unanswered = text;
    } else if (kind === "echo") {
      this.unanswered = undefined;
    }
  }

  decide() {
    if (this.unanswered === undefined) {
      return pause("nothing to echo");
    }
    return append(Output.json({ kind: "echo", text: this.unanswered.toUpperCase() }));
  }
}

main(import.meta, Echo);
