"""Folds the whole log, then appends one event: what the benchmark of Python handlers runs."""

import sys

import pugmark


def handle(session):
    inputs = ticks = letters = 0
    for obj in session.read():
        match obj.decode_json():
            case {"kind": "tick"}:
                ticks += 1
            case {"kind": "input", "text": text}:
                inputs += 1
                letters += len(text)
    session.write({"kind": "tick", "inputs": inputs, "ticks": ticks, "letters": letters})


if "--rpc" in sys.argv:
    from pugmark.http import WSGIPugmark, serve

    serve(WSGIPugmark(handle))
else:
    handle(pugmark.default_session())
