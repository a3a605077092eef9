"""The memory that every step starts from.

A step pays for each page of it that it writes to. The build leaves holes all over, which a step's
small objects would be put into, a page here and a page there. Filled, they leave a step to the free
memory behind them, where objects stand side by side.
"""

from typing import Callable, List

# What is left free in one piece, in bytes. It is zero, so that it takes no room in the component.
FRESH_BYTES = 4 * 1024 * 1024

# Holes are filled with objects that hold so many bytes; larger holes with several of them.
SIZES = (16384, 4096, 1024, 512, 256, 128, 64, 32, 16, 2)

# All holes of one size count as filled when so many objects in a row found none.
MISSES = 64


def fill_holes() -> List[object]:
    """Fills what is free in between. What it returns has to be kept."""
    fresh = bytearray(FRESH_BYTES)
    behind = id(bytes(FRESH_BYTES))
    kept: List[object] = []
    for size in SIZES:
        _fill(kept, lambda size=size: bytes(size), behind)
    _fill(kept, object, behind)
    del fresh
    return kept


def _fill(kept: List[object], make: Callable[[], object], behind: int) -> None:
    """Makes objects until they only come to stand behind all that there is."""
    missed: List[object] = []
    while len(missed) < MISSES:
        filler = make()
        if id(filler) < behind:
            kept.append(filler)
            missed.clear()
        else:
            missed.append(filler)
