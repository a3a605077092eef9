"""What `events()` yields: one class for each kind of line that has one."""

from typing import Optional

from ._objects import Object


class Event:
    """Something that happened in the session. Its string form is its kind."""

    def __str__(self) -> str:
        raise NotImplementedError


class StartEvent(Event):
    """The session began without a parent."""

    def __str__(self) -> str:
        return "start"


class ForkEvent(Event):
    """The session's own history begins here: what came before is inherited."""

    def __str__(self) -> str:
        return "fork"


class WakeEvent(Event):
    """A sleep ended."""

    def __str__(self) -> str:
        return "wake"


class PushEvent(Event):
    """Something was appended; `object` is what."""

    def __init__(self, obj: Object):
        self.object = obj

    def __str__(self) -> str:
        return "push"


_WITHOUT_OBJECT = {"start": StartEvent, "fork": ForkEvent, "wake": WakeEvent}


def event_of(obj: Object) -> Optional[Event]:
    """The event that a line stands for; None for kinds that have no class."""
    kind = obj.event()
    if kind == "push":
        return PushEvent(obj)
    known = _WITHOUT_OBJECT.get(kind)
    return None if known is None else known()
