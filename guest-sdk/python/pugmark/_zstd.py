"""Decompresses Zstandard (RFC 8878) in Python alone: the Python of components has no library for it.

Small bodies only: some hundred kilobytes a second. Frames that need a dictionary cannot be read;
checksums are passed over, as the host has checked the body's hash.
"""

from . import _zstd_tables as tables
from ._zstd_bits import Backward, Forward, fse_table, huffman_table

MAGIC = 0xFD2FB528
SKIPPABLE = 0x184D2A50

# The longest block, decompressed, in bytes.
LONGEST_BLOCK = 128 * 1024


def decompress(data: bytes) -> bytes:
    """All frames of `data`, one after the other. Raises ValueError if they are not whole or wrong."""
    out = bytearray()
    at = 0
    try:
        while at < len(data):
            magic = int.from_bytes(data[at : at + 4], "little")
            if magic & ~0xF == SKIPPABLE:
                at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            elif magic == MAGIC:
                at = _Frame(data, at + 4, out).decode()
            else:
                raise ValueError("no frame begins here")
    except (IndexError, KeyError) as error:
        raise ValueError("the data ends within a frame or cannot be right") from error
    if at > len(data):
        raise ValueError("the data ends within a frame")
    return bytes(out)


class _Frame:
    """One frame: its header, and what blocks leave for the blocks behind them."""

    def __init__(self, data: bytes, at: int, out: bytearray):
        self.data = data
        self.out = out
        # Matches reach back to here and no further.
        self.begin = len(out)
        self.at = self._header(at)
        self.huffman = None
        self.tables = {}
        self.offsets = [1, 4, 8]

    def _header(self, at: int) -> int:
        descriptor = self.data[at]
        single = descriptor >> 5 & 1
        self.has_checksum = descriptor >> 2 & 1
        if descriptor & 8:
            raise ValueError("a reserved bit is set")
        at += 1 if single else 2
        length = (0, 1, 2, 4)[descriptor & 3]
        if any(self.data[at : at + length]):
            raise ValueError("it needs a dictionary")
        return at + length + (single if descriptor >> 6 == 0 else 1 << (descriptor >> 6))

    def decode(self) -> int:
        """Appends what the frame holds, and returns where it ends."""
        last = 0
        while not last:
            header = int.from_bytes(self.data[self.at : self.at + 3], "little")
            if self.at + 3 > len(self.data):
                raise IndexError
            self.at += 3
            last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == 0:
                self._need(size)
                self.out += self.data[self.at : self.at + size]
                self.at += size
            elif kind == 1:
                self.out += self.data[self.at : self.at + 1] * size
                self._need(1)
                self.at += 1
            elif kind == 2:
                self._need(size)
                self._block(self.data[self.at : self.at + size])
                self.at += size
            else:
                raise ValueError("a block of a kind that is not known")
        return self.at + 4 * self.has_checksum

    def _need(self, size: int) -> None:
        if self.at + size > len(self.data):
            raise IndexError

    def _block(self, block: bytes) -> None:
        literals, at = self._literals(block)
        count = block[at]
        at += 1
        if count >= 255:
            count = int.from_bytes(block[at : at + 2], "little") + 0x7F00
            at += 2
        elif count >= 128:
            count = (count - 128 << 8) + block[at]
            at += 1
        if not count:
            self.out += literals
            return
        modes = block[at]
        at += 1
        for shift, name in ((6, "literals"), (4, "offsets"), (2, "matches")):
            at = self._sequence_table(name, modes >> shift & 3, block, at)
        self._execute(Backward(block[at:]), count, literals)

    # Literals.

    def _literals(self, block: bytes):
        """The literals of a block, and where its sequences begin."""
        kind, form = block[0] & 3, block[0] >> 2 & 3
        if kind < 2:
            length = (1, 2, 1, 3)[form]
            size = int.from_bytes(block[:length], "little") >> (3, 4, 3, 4)[form]
            if kind == 0:
                if length + size > len(block):
                    raise IndexError
                return block[length : length + size], length + size
            return bytes((block[length],)) * size, length + 1
        length, bits = ((3, 10), (3, 10), (4, 14), (5, 18))[form]
        header = int.from_bytes(block[:length], "little") >> 4
        size, packed = header & (1 << bits) - 1, header >> bits
        end = length + packed
        if end > len(block) or size > LONGEST_BLOCK:
            raise IndexError
        streams = block[length:end]
        if kind == 2:
            self.huffman, used = huffman_table(streams)
            streams = streams[used:]
        elif self.huffman is None:
            raise ValueError("literals without a table")
        if form == 0:
            return self._stream(streams, size), end
        return self._four_streams(streams, size), end

    def _four_streams(self, streams: bytes, size: int) -> bytes:
        sizes = [int.from_bytes(streams[at : at + 2], "little") for at in (0, 2, 4)]
        each = (size + 3) // 4
        at, parts = 6, []
        for packed in sizes:
            parts.append(self._stream(streams[at : at + packed], each))
            at += packed
        parts.append(self._stream(streams[at:], size - 3 * each))
        return b"".join(parts)

    def _stream(self, stream: bytes, size: int) -> bytes:
        bits, symbols, lengths = self.huffman
        source = Backward(stream)
        out = bytearray(size)
        left = source.left
        mask = (1 << bits) - 1
        take = int.from_bytes
        for index in range(size):
            at = left - bits
            if at >= 0:
                code = take(stream[at >> 3 : (at >> 3) + 4], "little") >> (at & 7) & mask
            else:
                code = take(stream[:4], "little") << -at & mask
            out[index] = symbols[code]
            left -= lengths[code]
        if left:
            raise ValueError("a stream of literals does not come out even")
        return bytes(out)

    # Sequences.

    def _sequence_table(self, name: str, mode: int, block: bytes, at: int) -> int:
        """Makes ready the table of a code, and returns where the next one begins."""
        most, predefined = tables.PREDEFINED[name]
        if mode == 0:
            self.tables[name] = fse_table(*predefined)
        elif mode == 1:
            self.tables[name] = ([block[at]], [0], [0], 0)
            at += 1
        elif mode == 2:
            source = Forward(block[at:])
            self.tables[name] = fse_table(*source.distribution(most))
            at += source.used()
        elif name not in self.tables:
            raise ValueError("a table is repeated that is not there")
        return at

    def _execute(self, source: Backward, count: int, literals: bytes) -> None:
        out, read, begin = self.out, source.read, self.begin
        ll, of, ml = (self.tables[name] for name in ("literals", "offsets", "matches"))
        ll_state, of_state, ml_state = read(ll[3]), read(of[3]), read(ml[3])
        taken = 0
        for rest in range(count - 1, -1, -1):
            offset_code = of[0][of_state]
            offset_value = (1 << offset_code) + read(offset_code)
            base, bits = tables.MATCH_LENGTHS[ml[0][ml_state]]
            match = base + read(bits)
            base, bits = tables.LITERAL_LENGTHS[ll[0][ll_state]]
            length = base + read(bits)
            offset = self._offset(offset_value, length)
            out += literals[taken : taken + length]
            taken += length
            start = len(out) - offset
            if start < begin:
                raise ValueError("a match begins before the frame")
            if offset >= match:
                out += out[start : start + match]
            else:
                out += (bytes(out[start:]) * (match // offset + 1))[:match]
            if rest:
                ll_state = ll[1][ll_state] + read(ll[2][ll_state])
                ml_state = ml[1][ml_state] + read(ml[2][ml_state])
                of_state = of[1][of_state] + read(of[2][of_state])
        if source.left or taken > len(literals):
            raise ValueError("the sequences of a block do not come out even")
        out += literals[taken:]

    def _offset(self, value: int, length: int) -> int:
        """The offset that a value stands for: a new one, or one of the last three."""
        recent = self.offsets
        if value > 3:
            offset = value - 3
            self.offsets = [offset, recent[0], recent[1]]
            return offset
        index = value - 1 + (length == 0)
        if index == 0:
            return recent[0]
        offset = recent[index] if index < 3 else recent[0] - 1
        if offset < 1:
            raise ValueError("an offset of nothing")
        kept = [recent[0], recent[1]] if index != 1 else [recent[0], recent[2]]
        self.offsets = [offset, *kept]
        return offset
