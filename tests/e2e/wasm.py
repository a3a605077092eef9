"""Makes guests of the text form: programs, typed handlers from core modules, and ones too large to write."""

import functools

from wasmtime import Engine, Module, wat2wasm

from pug import ROOT, guest

STEP = "pugmark:handler/step@0.1.0"
RUN = "wasi:cli/run@0.2.0"
COMPONENT = b"\0asm\x0d\0\x01\0"


def text(name):
    """A guest of tests/guests/wat. A typed handler is a core module there, and is told its types here."""
    source = (ROOT / f"tests/guests/wat/{name}.wat").read_text()
    built = bytes(wat2wasm(source))
    return built + types() if f'"{STEP}#fold"' in source else built


@functools.cache
def types():
    """The sections in which a typed handler's core module says what its component's types are."""
    built, found, position = guest("typed-probe").read_bytes(), b"", 8
    while position < len(built):
        length, begin = number(built, position + 1)
        if built[position] == 0:
            size, name = number(built, begin)
            if built[name : name + size].startswith(b"component-type"):
                found += built[position : begin + length]
        position = begin + length
    return found


def number(data, position):
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        value, shift, position = value | (byte & 0x7F) << shift, shift + 7, position + 1
        if byte < 0x80:
            return value, position


def encoded(value):
    """A number as LEB128."""
    rest, low = value >> 7, value & 0x7F
    return bytes([low]) if rest == 0 else bytes([low | 0x80]) + encoded(rest)


def section(kind, content):
    return bytes([kind]) + encoded(len(content)) + content


def program(body="", more=""):
    """A program for WASI preview 1."""
    return bytes(
        wat2wasm(
            '(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))'
            f'{more} (memory (export "memory") 1) (func (export "_start") {body}))'
        )
    )


def component(more="", name=RUN):
    """A component whose `run` does nothing, with `more` in it."""
    return bytes(
        wat2wasm(
            f"""(component {more}
            (core module $m (func (export "run") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $r (export "run" (func $run)))
            (export "{name}" (instance $r)))"""
        )
    )


def told(world):
    """A module that does nothing, and that says this of its component's world."""
    types = bytes(wat2wasm(f'(component (type (component {world})) (export "w" (type 0)))'))
    encoding = section(0, b"\x15wit-component-encoding" + b"\x04\0")
    named = b"\x0ecomponent-type"
    module = bytes(wat2wasm('(module (memory (export "memory") 1))'))
    return module + section(0, named + COMPONENT + encoding + types[len(COMPONENT) :])


def packages_in_circles():
    """Types of package `a` made of ones of `b`, made of ones of `a`."""
    return told(
        """(type (component
            (import "a:a/x" (instance $x (export "t" (type (sub resource)))))
            (alias export $x "t" (type $t))
            (import "b:b/y" (instance $y (alias outer 1 $t (type $t)) (export "u" (type (eq $t)))))
            (alias export $y "u" (type $u))
            (import "a:a/z" (instance (alias outer 1 $u (type $u)) (export "v" (type (eq $u)))))))
        (export "c:c/w" (component (type 0)))"""
    )


def type_of_a_world():
    """An interface whose type is one of the world's own."""
    return told(
        """(type (component
            (import "t" (type $t (sub resource)))
            (import "a:a/x" (instance (alias outer 1 $t (type $t)) (export "u" (type (eq $t)))))))
        (export "c:c/w" (component (type 0)))"""
    )


def many_instances():
    small = "(core module $small (memory 0))"
    return component(small + "(core instance (instantiate $small))" * 5_000)


def nested_components():
    inner = COMPONENT
    for _ in range(20_000):
        inner = COMPONENT + section(4, inner)
    return component() + section(4, inner)


def nested_types():
    types = [f"(type $t{n} (list $t{n - 1}))" for n in range(1, 100_000)]
    return component("(type $t0 (list u8))" + "".join(types))


def doubling_types():
    types = [f"(type $t{n} (tuple $t{n - 1} $t{n - 1}))" for n in range(1, 60)]
    return component("(type $t0 (tuple u64 u64))" + "".join(types))


def many_imports():
    return program(more="".join(f'(import "env" "{n:01000}" (func))' for n in range(10_000)))


def many_functions():
    return program(more="(func)" * 30_000)


def many_branches():
    targets = " ".join(str(n % 1_000) for n in range(60_000))
    blocks = "(block " * 1_000 + f"(br_table {targets} (i32.const 1))" + ")" * 1_000
    return program(more=f"(func {blocks})")


def many_locals():
    sums = "".join(
        f"(local.set {n % 49_000} (i64.add (local.get {n * 7 % 49_000}) (local.get {n * 13 % 49_000})))"
        for n in range(100_000)
    )
    return program(more="(func (local " + "i64 " * 49_000 + f") {sums})")


def nested_blocks():
    """No text form: its parser would be the one that gives up."""
    depth = 20_000

    def text(value):
        return encoded(len(value)) + value

    body = b"\0" + b"\x02\x40" * depth + b"\x0b" * depth + b"\x0b"
    return (
        b"\0asm\x01\0\0\0"
        + section(1, b"\x02\x60\0\x01\x7f\x60\0\0")
        + section(2, b"\x01" + text(b"wasi_snapshot_preview1") + text(b"sched_yield") + b"\0\0")
        + section(3, b"\x01\x01")
        + section(5, b"\x01\0\x01")
        + section(7, b"\x02" + text(b"memory") + b"\x02\0" + text(b"_start") + b"\0\x01")
        + section(10, b"\x01" + text(body))
    )


def one_large_function():
    return program("(i32.const 1) " + "(i32.const 7) (i32.add)" * 1_000_000 + " (drop)")


def escapes_in_an_export():
    name = "\\1b[31mred\\07 \\e2\\80\\aedesrever\\n"
    return bytes(wat2wasm(f'(module (func (export "{name}")))'))


def escapes_in_an_import():
    return program(more='(import "\\1b[31mred" "\\07 \\e2\\80\\aedesrever\\n" (func))')


def native_code():
    """What an engine makes of a component, for whoever would run it unseen."""
    return bytes(Module(Engine(), wat2wasm("(module)")).serialize())


def truncated():
    whole = guest("counter").read_bytes()
    return whole[: len(whole) // 2]
