"""An event loop for `asyncio` where there are no sockets: tasks, timers and what is built on them.

Nothing outside can wake a task, so waiting is moving the clock, which in the sandbox takes no time.
"""

import asyncio.base_events
import asyncio.events
import time


class _Clock:
    """Stands where other loops ask the system for events."""

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError(
                "all tasks wait for something that cannot happen in the sandbox: a socket, a thread "
                "or a signal"
            )
        if timeout > 0:
            time.sleep(timeout)
        return []


class Loop(asyncio.base_events.BaseEventLoop):
    """A loop of tasks and timers."""

    def __init__(self):
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, event_list):
        """There are none."""

    def _write_to_self(self):
        """Nobody else runs who would have to be heard."""


def install(module) -> None:
    """Has `asyncio.run` and its like make this one."""
    type(asyncio.events._get_event_loop_policy())._loop_factory = Loop
