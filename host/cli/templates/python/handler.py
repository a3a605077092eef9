"""Answers each input with its text in capitals, then waits for the next one."""

import pugmark


def decide(events):
    """The event to append to a log of these events; None to wait for more."""
    match events[-1:]:
        case [{"kind": "input", "text": str(text)}]:
            return {"kind": "echo", "text": text.upper()}
    return None


def main():
    answer = decide([entry.decode_json() for entry in pugmark.read()])
    if answer is None:
        pugmark.pause("nothing to echo")
    else:
        pugmark.write(answer)


if __name__ == "__main__":
    main()
