"""The counter as a component of 18 MB: a Python interpreter comes with it."""

from wit_world import exports
from wit_world.imports import types

count = 0


class Step(exports.Step):
    def fold(self, entry: types.Entry) -> None:
        global count
        count += 1

    def decide(self) -> types.Decision:
        body = b'{"count":%d}' % count
        output = types.Output(
            data=body, name=None, content_type="application/json",
            content_encoding=None, schema_url=None, metadata=[], extra=[],
        )
        return types.Decision(outputs=[output], next=types.Next_Continue(), extra=[])
