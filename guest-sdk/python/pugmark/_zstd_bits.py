"""Bits of Zstandard's streams, and the tables that give them a meaning."""

from typing import List, Tuple

# A table of finite-state entropy: for each state the symbol, the base of the next state and how many
# bits are added to it; and how many bits the first state has.
Fse = Tuple[List[int], List[int], List[int], int]

# A Huffman table: how many bits a code has at most; for each number of that many bits the symbol it
# begins with, and how many bits that is.
Huffman = Tuple[int, List[int], List[int]]


class Backward:
    """Reads a stream from its end to its beginning."""

    def __init__(self, data: bytes):
        if not data or not data[-1]:
            raise ValueError("a stream without an end")
        self.data = data
        # How many bits are left to read. Below zero there are zeros, where a table is asked for more.
        self.left = len(data) * 8 - 9 + data[-1].bit_length()

    def read(self, bits: int) -> int:
        """The next bits as a number."""
        self.left -= bits
        at = self.left
        if at >= 0:
            return int.from_bytes(self.data[at >> 3 : (at >> 3) + 8], "little") >> (at & 7) & (
                (1 << bits) - 1
            )
        if at < -64:
            raise ValueError("a stream ends too early")
        return int.from_bytes(self.data[:8], "little") << -at & ((1 << bits) - 1)


class Forward:
    """Reads a stream from its beginning."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def peek(self, bits: int) -> int:
        """The next bits as a number."""
        at = self.at
        return int.from_bytes(self.data[at >> 3 : (at >> 3) + 8], "little") >> (at & 7) & (
            (1 << bits) - 1
        )

    def read(self, bits: int) -> int:
        """The next bits, which are gone then."""
        value = self.peek(bits)
        self.at += bits
        return value

    def used(self) -> int:
        """How many bytes have been begun."""
        used = (self.at + 7) // 8
        if used > len(self.data):
            raise IndexError
        return used

    def distribution(self, most: int) -> Tuple[List[int], int]:
        """How often each symbol comes, and the table's size as a power of two, at most `most`."""
        accuracy = self.read(4) + 5
        if accuracy > most:
            raise ValueError("a table is too large")
        left = (1 << accuracy) + 1
        counts: List[int] = []
        while left > 1:
            count = self._count(left)
            left -= abs(count)
            counts.append(count)
            if count == 0:
                repeat = 3
                while repeat == 3:
                    repeat = self.read(2)
                    counts += [0] * repeat
        if left != 1 or len(counts) > 256:
            raise ValueError("a table does not come out even")
        return counts, accuracy

    def _count(self, left: int) -> int:
        """One count. Small ones have a bit less, as far as there are numbers for them to have."""
        bits = left.bit_length()
        value = self.peek(bits)
        threshold = (1 << bits) - 1 - left
        low = value & (1 << bits - 1) - 1
        if low < threshold:
            self.at += bits - 1
            return low - 1
        self.at += bits
        return (value - threshold if value >= 1 << bits - 1 else value) - 1


def fse_table(counts: List[int], accuracy: int) -> Fse:
    """The table of a distribution, in which -1 is a symbol that comes less than once."""
    size = 1 << accuracy
    symbols = [0] * size
    high = size
    for symbol, count in enumerate(counts):
        if count == -1:
            high -= 1
            symbols[high] = symbol
    step, at = (size >> 1) + (size >> 3) + 3, 0
    for symbol, count in enumerate(counts):
        for _ in range(count):
            symbols[at] = symbol
            at = at + step & size - 1
            while at >= high:
                at = at + step & size - 1
    following = [abs(count) for count in counts]
    bases, bits = [0] * size, [0] * size
    for state, symbol in enumerate(symbols):
        following[symbol] += 1
        number = following[symbol] - 1
        bits[state] = accuracy - number.bit_length() + 1
        bases[state] = (number << bits[state]) - size
    return symbols, bases, bits, accuracy


def huffman_table(data: bytes) -> Tuple[Huffman, int]:
    """The table that `data` begins with, and how many bytes that takes."""
    head = data[0]
    if head >= 128:
        count = head - 127
        used = 1 + (count + 1) // 2
        packed = data[1:used]
        weights = [packed[i // 2] >> (4 if i % 2 == 0 else 0) & 15 for i in range(count)]
    else:
        used = 1 + head
        weights = _packed_weights(data[1:used])
    if used > len(data):
        raise IndexError
    total = sum(1 << weight - 1 for weight in weights if weight)
    if not total:
        raise ValueError("a table without symbols")
    bits = total.bit_length()
    rest = (1 << bits) - total
    if rest & rest - 1 or bits > 11:
        raise ValueError("the weights of a table do not come out even")
    weights.append(rest.bit_length())
    symbols: List[int] = []
    lengths: List[int] = []
    for weight in range(1, bits + 1):
        for symbol, own in enumerate(weights):
            if own == weight:
                symbols += [symbol] * (1 << weight - 1)
                lengths += [bits + 1 - weight] * (1 << weight - 1)
    return (bits, symbols, lengths), used


def _packed_weights(data: bytes) -> List[int]:
    """Weights that two states take turns at."""
    source = Forward(data)
    symbols, bases, bits, accuracy = fse_table(*source.distribution(6))
    stream = Backward(data[source.used() :])
    states = [stream.read(accuracy), stream.read(accuracy)]
    weights: List[int] = []
    turn = 0
    while len(weights) < 255:
        state = states[turn]
        weights.append(symbols[state])
        if stream.left < bits[state]:
            weights.append(symbols[states[1 - turn]])
            return weights
        states[turn] = bases[state] + stream.read(bits[state])
        turn = 1 - turn
    raise ValueError("a table has too many weights")
