"""Guests that try to escape, exhaust or confuse the host, and what has to come of each."""

# One guest a line.
# fmt: off

import functools
import json
from dataclasses import dataclass

import wasm
from pug import DONE, FAILED, LIMIT, UNUSABLE, guest

TYPED, MAX, COMMAND = "typed-probe", "typed-probe-max", "command-probe"
FAST = ("--timeout", "1s")
PAUSES = {"content-type": "application/vnd.pugmark.pause+text"}


@dataclass
class Guest:
    """One of them: its name, what it tries, how it is made and run, and how that has to end."""

    name: str
    tries: str
    code: int
    #: What the error says, as a regular expression; of a step that ends well, what the log holds.
    says: str
    #: Its file; else the text of `tests/guests/wat` with its name.
    file: object = None
    #: The first event of its session.
    event: object = None
    flags: tuple = ()
    #: Bytes of memory, in MiB, that the host and its compiler may take at most.
    memory: int = 400

    def make(self, folder):
        """Its file on disk."""
        if isinstance(self.file, str):
            return guest(self.file)
        path = folder / f"{self.name}.wasm"
        path.write_bytes(self.file() if self.file else wasm.text(self.name))
        return path


def typed(name, tries, code, says, *flags, file=TYPED, event=None):
    """A probe of the typed world."""
    return Guest(name, tries, code, says, file, event or {"probe": name}, flags)


def command(name, tries, code, says, *flags, event=None):
    """A probe of the command world."""
    return Guest(name, tries, code, says, COMMAND, event or {"probe": name}, flags)


def written(name, tries, code, says, line, count=1, *flags):
    """A program that writes one line so many times."""
    line = line if isinstance(line, str) else json.dumps(line)
    event = {"probe": "raw-lines", "text": line, "count": count}
    return Guest(name, tries, code, says, COMMAND, event, flags)


def text(name, tries, code, says, *flags, **options):
    """A guest of the text form."""
    return Guest(name, tries, code, says, flags=flags, **options)


def made(name, tries, code, says, make, *flags, **options):
    """A guest that is too large to write down."""
    return Guest(name, tries, code, says, make, flags=flags, **options)


TRAP = r"the handler trapped: wasm `unreachable` instruction executed"
TIME = r"over the time limit of 1000 ms; `--timeout` raises it"
MEMORY = r"over the memory limit of 256MiB; `--limit memory=512MiB` raises it"
CALL = r"one call carries more than 128MiB"
CONTRADICTS = r"not valid: it contradicts itself or nests too deep"
UNREADABLE = r"cannot be compiled: failed to parse WebAssembly module"

ENDLESS = [
    typed("spin-fold", "loops for ever in `fold`", LIMIT, TIME, *FAST),
    typed("spin-decide", "loops for ever in `decide`", LIMIT, TIME, *FAST),
    command("spin", "loops for ever", LIMIT, TIME, *FAST),
    text("spin-in-start", "loops for ever while it is instantiated", LIMIT, TIME, *FAST),
    text("realloc-spins", "loops for ever where the host asks it for room", LIMIT, TIME, *FAST),
    text("post-return-spins", "loops for ever where the host is done with its answer", LIMIT, TIME, *FAST),
    text("fills-for-ever", "fills 196 MB with one instruction, for ever", LIMIT, TIME, *FAST),
    text("random-for-ever", "asks for 16 MiB of random bytes, for ever", LIMIT, TIME, *FAST),
    text("sleeps-often", "sleeps 584 years at a time, for ever", LIMIT, TIME, *FAST),
    text("blocks-for-ever", "waits for the longest time there is, a thousand times", DONE, "nothing"),
    text("sleeps-for-ever", "has the session sleep for 584 million years", FAILED, r"longer than 292 years"),
    text("recursion", "calls itself for ever", LIMIT, r"over the call stack limit of 1MiB, which is fixed"),
    typed("stack", "calls itself for ever, with a stack in its own memory", FAILED, r"trapped: out of bounds memory access"),
]

MEMORY_BOMBS = [
    typed("memory-hog", "grows its memory page by page", LIMIT, MEMORY),
    typed("memory-hog-of-64-pages", "the same, with a maximum of its own, above the limit", LIMIT, r"limit of 2MiB", "--limit", "memory=2MiB", file=MAX, event={"probe": "memory-hog"}),
    command("memory-hog-program", "the same, as a program", LIMIT, MEMORY, event={"probe": "memory-hog"}),
    text("huge-memory", "begins with a memory of 4 GiB", LIMIT, MEMORY),
    text("many-memories", "begins with sixty memories of 16 MiB", LIMIT, MEMORY),
    text("memories-in-turn", "grows two memories in turn", LIMIT, MEMORY),
    text("realloc-hog", "grows its memory where the host asks it for room", LIMIT, MEMORY),
    text("table-growth", "grows a table for ever", LIMIT, r"over the table limit of 1000000 elements"),
    text("many-tables", "begins with fifty tables of a million elements", LIMIT, r"over the table limit of 1000000 elements"),
    made("many-instances", "is five thousand instances of one module", UNUSABLE, UNREADABLE + r".*instances count exceeds limit", wasm.many_instances),
    text("pollables-kept", "makes things to wait for and drops none", LIMIT, r"over the handles limit of 10000 open at a time"),
    text("inputs-kept", "opens its standard input for ever", LIMIT, r"over the handles limit of 10000 open at a time"),
    text("poll-one-often", "waits for one thing, named a million times", LIMIT, r"over the handles limit of 10000 open at a time"),
    text("random-hog", "asks for 16 EiB of random bytes", LIMIT, r"asked for 18446744073709551615 bytes at once, over the read limit of 16MiB"),
    text("zeroes-for-ever", "has the host write 16 EiB of zeroes", FAILED, r"a write of more bytes than are permitted"),
    text("reads-everything", "reads 16 EiB of its input, a thousand times", DONE, "nothing"),
    text("hash-hog", "passes the host a text of 200 MB", LIMIT, CALL),
    typed("read-forever", "reads one object for ever", LIMIT, r"object-reads limit of 4KiB.*--limit object-reads=8KiB", "--limit", "object-reads=4KiB"),
]

TOO_MUCH = [
    typed("outputs-flood", "answers with a million outputs", LIMIT, r"over the outputs limit|one call carries"),
    written("lines-flood", "writes a million outputs", LIMIT, r"over the outputs limit of 10000 a step", {"data": "MQ=="}, 1_000_000),
    written("fork-bomb", "writes a million outputs that each fork a child", LIMIT, r"over the outputs limit of 10000 a step", {"data": "MQ==", "fork": True}, 1_000_000),
    text("outputs-of-one-body", "answers with ten thousand outputs that are all the same 900,000 bytes", LIMIT, CALL),
    text("metadata-many", "answers with four million pairs of metadata", LIMIT, CALL),
    text("metadata-of-nothing", "answers with twelve million empty pairs of metadata", LIMIT, CALL),
    text("extra-many", "answers with eight million additions", LIMIT, CALL),
    typed("output-huge", "answers with an output of 100 MB", LIMIT, r"over the output limit of 64MiB a step", event={"probe": "output-huge", "bytes": 100 << 20}),
    command("stdout-endless-line", "writes one line without end", LIMIT, r"over the output limit of 1MiB", "--limit", "output=1MiB"),
    command("stdout-huge", "writes one output of 9 MB", LIMIT, r"over the output limit of 4MiB", "--limit", "output=4MiB", event={"probe": "stdout-huge", "bytes": 9 << 20}),
    typed("log-flood", "logs for ever", LIMIT, r"over the log-lines limit of 20 a step", "--limit", "log-lines=20"),
    command("stderr-flood", "writes diagnostics for ever", LIMIT, r"over the stderr limit of 64KiB", "--limit", "stderr=64KiB"),
    typed("pause-long", "pauses for a reason of 16 MiB", LIMIT, r"over the output limit of 4MiB", "--limit", "output=4MiB"),
    typed("refuse-long", "refuses for a reason of 16 MiB", FAILED, r"answered with an error: x+ … \(16777282 bytes in all\)"),
    text("huge-name", "names an output with ten million letters", LIMIT, r"makes an entry of 10000111 bytes, over the limit of 262144"),
    written("metadata-bomb", "describes an output with 30,000 pairs of metadata", LIMIT, r"makes an entry of \d+ bytes, over the limit of 262144", {"data": "MQ==", "metadata": {f"k{n}": "v" for n in range(30_000)}}),
]

ABI = [
    text("realloc-traps", "traps where the host asks it for room", FAILED, TRAP),
    text("realloc-out-of-bounds", "gives the host room behind its memory", FAILED, r"realloc return: beyond end of memory"),
    text("realloc-misaligned", "gives the host room that is not aligned", FAILED, r"realloc return: result not aligned"),
    text("realloc-calls-back", "calls the host where the host asks it for room", FAILED, r"cannot leave component instance"),
    text("realloc-everywhere", "has the host overwrite the guest's own data", DONE, "nothing"),
    text("post-return-traps", "traps where the host is done with its answer", FAILED, TRAP),
    text("post-return-calls", "calls the host where the host is done with its answer", FAILED, r"cannot leave component instance"),
    text("answer-out-of-bounds", "answers with an address behind its memory", FAILED, r"pointer out of bounds of memory"),
    text("answer-at-the-end", "answers with an address where no answer fits", FAILED, r"pointer out of bounds of memory"),
    text("answer-misaligned", "answers with an address that is not aligned", FAILED, r"return pointer not aligned"),
    text("refusal-out-of-bounds", "refuses with a text of 2 GiB that is not there", FAILED, r"string pointer/length out of bounds of memory"),
    text("refusal-not-utf8", "refuses with a text that is not UTF-8", FAILED, r"invalid utf-8 sequence"),
    text("unknown-result", "answers with neither a result nor an error", FAILED, r"invalid expected discriminant"),
    text("unknown-next", "says that something unheard of comes next", FAILED, r"unexpected discriminant: 7"),
    text("outputs-overflow", "answers with so many outputs that their length overflows", FAILED, r"list pointer/length out of bounds of memory"),
    text("outputs-out-of-bounds", "answers with more outputs than its memory holds", FAILED, r"list pointer/length out of bounds of memory"),
    text("session-nowhere", "has the host answer behind the guest's memory", FAILED, r"pointer out of bounds"),
    text("hash-out-of-bounds", "passes the host a text of 2 GiB that is not there", FAILED, r"string pointer/length out of bounds of memory"),
    text("log-not-utf8", "logs what is not UTF-8", FAILED, r"invalid utf-8 sequence"),
    text("log-unknown-level", "logs at a level that there is not", FAILED, r"unexpected discriminant: 9"),
    text("forged-handle", "waits for what it was never given", FAILED, r"unknown handle index 4711"),
    text("drops-twice", "drops one thing twice", FAILED, r"unknown handle index 1"),
    text("poll-nothing", "waits for nothing", FAILED, r"poll was called with nothing to wait for"),
    text("poll-out-of-bounds", "waits for a list of 48 GB that is not there", FAILED, TRAP),
    text("too-many-slices", "writes a list of 8 GB that is not there", FAILED, r"out of bounds memory access"),
    text("slice-out-of-bounds", "writes 4 GiB that are not there", FAILED, r"list pointer/length out of bounds of memory"),
]

ENDS = [
    typed("trap-fold", "traps in `fold`", FAILED, TRAP),
    typed("trap", "traps in `decide`", FAILED, TRAP),
    text("trap-in-start", "traps while it is instantiated", FAILED, TRAP),
    typed("panic", "panics", FAILED, TRAP),
    command("panic-program", "panics, as a program", FAILED, TRAP, event={"probe": "panic"}),
    text("writes-then-traps", "writes an output that would be good, then traps", FAILED, TRAP),
    command("exit", "writes an output, then exits with code 3", FAILED, r"the handler exited with code", event={"probe": "exit", "code": 3}),
    text("exit-in-decide", "a typed handler that exits like a program, with code 0", FAILED, r"the handler exited with code 0"),
    typed("refuse-fold", "refuses an entry", FAILED, r"answered with an error: refused at 0"),
    typed("refuse", "refuses to decide", FAILED, r"answered with an error: refused on purpose"),
    typed("unknown-probe", "refuses what it does not know", FAILED, r"no such probe"),
]

CONFUSING = [
    written("not-json", "writes what is not JSON", FAILED, r"output 1 cannot be used: it is not JSON", "oops"),
    written("no-object", "writes a list", FAILED, r"not a JSON object", "[1]"),
    written("deep", "writes a hundred thousand brackets", FAILED, r"not a JSON object, but `\[\[", "[" * 100_000 + "]" * 100_000),
    written("no-body", "writes an output without a body", FAILED, r"neither", {"name": "x"}),
    written("two-bodies", "writes an output with two bodies", FAILED, r"both", {"data": "MQ==", "uri": "s3://a/b"}),
    written("same-field-twice", "writes one field twice", FAILED, r"duplicate field `data`", '{"data":"MQ==","data":"Mg=="}'),
    written("bad-base64", "writes a body that is not base64", FAILED, r"base64", {"data": "*"}),
    written("bad-fork", "writes a fork that is a number", FAILED, r"`fork`", {"data": "MQ==", "fork": 1}),
    written("lone-surrogate", "names an output with half a character", FAILED, r"a `name` that is not a string", '{"data":"MQ==","name":"\\ud800"}'),
    command("not-utf8", "names an output with what is not UTF-8", FAILED, r"not JSON", event={"probe": "raw-base64", "text": "eyJkYXRhIjoiTVE9PSIsIm5hbWUiOiL/In0K"}),
    typed("output-extra", "adds to an output what no version knows", FAILED, r"`later` is not known"),
    typed("decision-extra", "adds to its decision what no version knows", FAILED, r"`later` is not known"),
    written("long-sleep", "sleeps for a thousand million years", FAILED, r"longer than 292 years", {"data": "MQ==", **PAUSES, "metadata": {"duration": "9999999999999h"}}),
    written("sleep-backwards", "sleeps for less than no time", FAILED, r"cannot be negative", {"data": "MQ==", **PAUSES, "metadata": {"duration": "-1s"}}),
    written("no-sleep", "sleeps for a time that is not a number", FAILED, r"not a duration", {"data": "MQ==", **PAUSES, "metadata": {"duration": "NaN"}}),
    typed("refuse-escapes", "refuses with terminal escapes and bidirectional controls", FAILED, r"\\u\{1b\}\[31mred"),
    text("trap-escapes", "traps in a function whose name holds terminal escapes", FAILED, r"in \\u\{1b\}\[31mred\\u\{7\}"),
    text("name-escapes", "names an output with terminal escapes", DONE, "one event"),
]

REACHING = [
    written("host-file", "has the host fetch `/etc/passwd`", FAILED, r"`uri`, which a handler in the sandbox cannot", {"uri": "file:///etc/passwd"}),
    written("no-session", "writes to a session that is not one", FAILED, r"`session`", {"data": "MQ==", "session": "../../x"}),
    written("unknown-session", "writes to a session that is not in the bucket", FAILED, r"it is not in this bucket", {"data": "MQ==", "session": "01a22d43-28a7-7f41-99cb-5254cc545946"}),
    written("path-in-name", "names an output `../../../../tmp/x`, for whoever pulls it", DONE, "one event", {"data": "MQ==", "name": "../../../../tmp/x"}),
    written("root-in-name", "names an output `/etc/passwd`", DONE, "one event", {"data": "MQ==", "name": "/etc/passwd"}),
]

FILES = [
    made("one-large-function", "is one function of 5 MB", DONE, "nothing", wasm.one_large_function, memory=2_600),
    made("many-functions", "is 30,000 functions", DONE, "nothing", wasm.many_functions, memory=2_600),
    made("many-branches", "branches to 60,000 places at once", DONE, "nothing", wasm.many_branches),
    made("many-locals", "has 49,000 variables in one function", DONE, "nothing", wasm.many_locals),
    made("nested-blocks", "nests 20,000 blocks", DONE, "nothing", wasm.nested_blocks, memory=2_600),
    made("nested-components", "nests 20,000 components", UNUSABLE, r"cannot be compiled: it takes more than 2147483648 bytes of memory", wasm.nested_components, memory=2_600),
    made("nested-types", "nests 100,000 types", UNUSABLE, UNREADABLE + r".*type nesting is too deep", wasm.nested_types),
    made("packages-in-circles", "says of its types that two packages are made of each other", UNUSABLE, CONTRADICTS, wasm.packages_in_circles),
    made("type-of-a-world", "says that an interface's type is its world's", UNUSABLE, CONTRADICTS, wasm.type_of_a_world),
    made("doubling-types", "has a type that doubles sixty times", UNUSABLE, UNREADABLE + r".*effective type size", wasm.doubling_types),
    made("many-imports", "imports ten thousand functions that there are not", UNUSABLE, r"imports what no sandbox offers: env\.0+", wasm.many_imports),
    made("escapes-in-an-export", "exports a name with terminal escapes, and no handler", UNUSABLE, r"exports \\u\{1b\}\[31mred", wasm.escapes_in_an_export),
    made("escapes-in-an-import", "imports a name with terminal escapes", UNUSABLE, r"offers: \\u\{1b\}\[31mred", wasm.escapes_in_an_import),
    text("other-types", "imports a function of WASI's by other types", UNUSABLE, r"`wasi:random/random@0.2.0`, but a matching implementation was not found"),
    made("wasi-0.3", "exports `run` of WASI 0.3 only", UNUSABLE, r"0\.3", functools.partial(wasm.component, name="wasi:cli/run@0.3.0")),
    made("native-code", "is compiled code, handed over in place of a component", UNUSABLE, r"not WebAssembly", wasm.native_code),
    made("truncated", "is half a component", UNUSABLE, r"not valid", wasm.truncated),
]

GROUPS = {
    "Without end": ENDLESS,
    "Memory, tables and handles": MEMORY_BOMBS,
    "Too much to say": TOO_MUCH,
    "Breaking the calling convention": ABI,
    "Bad ends": ENDS,
    "Confusing the host": CONFUSING,
    "Reaching out": REACHING,
    "Files": FILES,
}
