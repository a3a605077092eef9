"""When things happen: a component's imports run while it is built, its script in each step."""

# Whether a step is under way. Unset while a component is built, when there is no session yet.
building = False


class NoSessionYet(BaseException):
    """The session was asked for while the component was being built.

    No `Exception`: a module that shields its imports against those must not be built on a session
    that is not there.
    """


def need_session(what: str) -> None:
    """Refuses `what` while the component is built."""
    if building:
        raise NoSessionYet(f"pugmark.{what}() was called while the component was built")
