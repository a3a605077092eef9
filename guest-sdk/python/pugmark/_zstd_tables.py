"""Zstandard's constants (RFC 8878, sections 3.1.1.3.2.1.1 and 3.1.1.3.2.2)."""


def _lengths(first: int, bits: list) -> list:
    """Codes of lengths: where each begins, and how many bits are added."""
    codes = []
    for more in bits:
        codes.append((first, more))
        first += 1 << more
    return codes


LITERAL_LENGTHS = _lengths(0, [0] * 16 + [1, 1, 1, 1, 2, 2, 3, 3, 4, *range(6, 17)])
MATCH_LENGTHS = _lengths(
    3, [0] * 32 + [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, *range(7, 17)]
)

# Of each code: the largest table, and the distribution that need not be written out.
PREDEFINED = {
    "literals": (
        9,
        (
            [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2]
            + [2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1],
            6,
        ),
    ),
    "offsets": (
        8,
        ([1] * 6 + [2] * 3 + [1] * 15 + [-1] * 5, 5),
    ),
    "matches": (
        9,
        (
            [1, 4, 3, 2, 2, 2, 2, 2, 2] + [1] * 37 + [-1] * 7,
            6,
        ),
    ),
}
