"""Files that are no handler the sandbox can run: told by name, before a session is touched."""

import shutil

import pytest
from wasmtime import wat2wasm

from pug import DONE, FAILED, LIMIT, NOT_FOUND, UNUSABLE, Home, guest

STEP = "pugmark:handler/step@0.1.0"
RUN2, RUN3 = "wasi:cli/run@0.2.0", "wasi:cli/run@0.3.0"


def command(body="", imports="", extra="", memory="1"):
    """A program for WASI preview 1."""
    return (
        f'(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32))) {imports} {extra}'
        f'(memory (export "memory") {memory}) (func (export "_start") {body}))'
    )


def run_export(name):
    """A component that exports `run` under this name, and nothing else."""
    return f"""(component
      (core module $m (func (export "run") (result i32) (i32.const 0)))
      (core instance $i (instantiate $m))
      (func $run (result (result)) (canon lift (core func $i "run")))
      (instance $r (export "run" (func $run)))
      (export "{name}" (instance $r)))"""


def importing(name):
    return f"""(component (import "{name}" (instance (export "f" (func))))
      (core module $m (func (export "run") (result i32) (i32.const 0)))
      (core instance $i (instantiate $m))
      (func $run (result (result)) (canon lift (core func $i "run")))
      (instance $r (export "run" (func $run)))
      (export "{RUN2}" (instance $r)))"""


UNUSABLE_WAT = {
    "unknown import": (command(imports='(import "env" "magic" (func))'), ["env.magic"]),
    "unknown WASI import": (
        command(imports='(import "wasi_snapshot_preview1" "fly" (func))'),
        ["wasi_snapshot_preview1.fly"],
    ),
    "two unknown imports": (
        command(imports='(import "env" "one" (func)) (import "js" "two" (func))'),
        ["env.one", "js.two"],
    ),
    "a program without WASI": (
        '(module (memory (export "memory") 1) (func (export "_start")))',
        ["no handler", "imports nothing of WASI"],
    ),
    "no export": ("(module)", ["no handler", "_start"]),
    "another export": ('(module (func (export "add")))', ["no handler", "add"]),
    "empty component": ("(component)", ["no handler", STEP, "wasi:cli/run"]),
    "component of another world": (run_export("a:b/c@1.0.0"), ["no handler", "a:b/c@1.0.0"]),
    "WASI 0.3 only": (run_export(RUN3), ["0.3"]),
    "unserved import": (
        importing("wasi:keyvalue/store@0.2.0-draft"),
        ["wasi:keyvalue/store@0.2.0-draft"],
    ),
    "unserved import of ours": (
        importing("pugmark:handler/effects@0.1.0"),
        ["pugmark:handler/effects@0.1.0"],
    ),
    "memory64": (command(memory="i64 1"), ["memory64", "64-bit"]),
    "threads": (command(memory="1 1 shared"), ["threads", "shared"]),
}


@pytest.fixture
def refused(home, unchanged):
    home.start([1])
    unchanged()

    def refused(path):
        before = home.bucket.files()
        message = home.fails(UNUSABLE, "run", "--start", "--", path)
        assert f"cannot use `{path}` as a handler" in message
        assert home.bucket.files() == before
        return message

    return refused


@pytest.mark.parametrize("case", UNUSABLE_WAT)
def test_webassembly_that_is_no_handler(home, refused, case):
    wat, said = UNUSABLE_WAT[case]
    file = home.path / "it.wasm"
    file.write_bytes(wat2wasm(wat))
    message = home.fails(UNUSABLE, "run", "--start", "--", file)
    assert f"cannot use `{file}` as a handler" in message
    if case in ("memory64", "threads"):
        assert any(word in message for word in said), message
    else:
        assert all(word in message for word in said), message


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "not WebAssembly"),
        (b"\0as", "not WebAssembly"),
        (b"#!/bin/sh\n", "not WebAssembly"),
        (b"(module)", "not WebAssembly"),
        (b"\0asm\x01\0\0\0\xff\xff\xff", "not valid"),
        (b"\0asm\x02\0\0\0", ""),
        (b"\0asm", ""),
        (b"\x7fELF", "not WebAssembly"),
    ],
    ids=["empty", "too short", "script", "text form", "garbage", "version 2", "magic only", "ELF"],
)
def test_not_webassembly(home, refused, content, said):
    file = home.path / "it.wasm"
    file.write_bytes(content)
    assert said in refused(file)


def test_a_component_that_was_cut_off(home, refused):
    whole = guest("triage").read_bytes()
    file = home.path / "it.wasm"
    for length in [len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:length])
        assert "not valid" in refused(file)


def test_no_such_file(home, unchanged):
    home.start([1])
    unchanged()
    assert "`./no.wasm`" in home.fails(NOT_FOUND, "run", "--start", "--", "./no.wasm")
    (home.path / "folder.wasm").mkdir()
    assert home.run("run", "--start", "--", "./folder.wasm").code in (UNUSABLE, 2)


def test_compiled_code_is_never_loaded(home, refused):
    other = Home(home.path / "other")
    other.ok("run", "--start", "--once", "--", guest("counter"))
    [code] = other.path.glob(".cache/pugmark/components/*.cwasm")
    shutil.copy(code, home.path / "it.cwasm")
    assert "not WebAssembly" in refused(home.path / "it.cwasm")


def test_the_file_itself_chooses_the_sandbox(home):
    session = home.start({"n": 1})
    shutil.copy(guest("counter"), home.path / "agent")
    home.ok("run", "--once", "--", "./agent")
    home.ok("run", "--once", "--handler", "it=./agent some 'more args'")
    one, two = (s["step"] for s in home.bucket.snapshots(session)[2:])
    assert (one["kind"], one["handler"], one["args"]) == ("component", "agent", [])
    assert (two["handler"], two["args"]) == ("it", ["some", "more args"])
    assert one["component"] == two["component"]
    home.bucket.object(one["component"])


def test_triage_in_each_of_its_builds(home):
    """wasm32-unknown-unknown, -wasip1, and -wasip2 where there is one: the same answers."""
    event = {
        "action": "opened",
        "issue": {
            "number": 7,
            "title": "It crashes",
            "body": "Boom",
            "labels": [],
            "user": {"login": "ada", "type": "User"},
        },
    }
    logs = []
    for build in ["triage", "triage-wasip1", "triage-wasip2"]:
        if build == "triage-wasip2" and not (guest("triage").parent / f"{build}.wasm").exists():
            continue
        session = home.start(event)
        home.ok("run", "--", guest(build))
        logs.append(home.bucket.root(session))
    assert len(logs) >= 2 and len(set(logs)) == 1


def test_a_component_that_exports_run_and_nothing_else(home):
    file = home.path / "run.wasm"
    file.write_bytes(wat2wasm(run_export(RUN2)))
    session = home.start([1])
    result = home.run("run", "--", file)
    assert (result.code, result.err.splitlines()[-1]) == (DONE, "1 step, at rest")
    assert home.bucket.log(session) == home.bucket.log(session, 1)


@pytest.mark.parametrize(
    "body, code, said",
    [
        ("(call $f)", LIMIT, "call stack limit"),
        (
            "(drop (table.grow $t (ref.null func) (i32.const 2000000)))",
            LIMIT,
            "table limit of 1000000 elements",
        ),
        ("(loop $l (br $l))", LIMIT, "time limit of 1000 ms"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", FAILED, "divide by zero"),
        ("(drop (i32.load (i32.const -1)))", FAILED, "out of bounds memory access"),
        ("(call_indirect (type $none) (i32.const 0))", FAILED, "uninitialized element"),
    ],
    ids=["stack", "table", "loop", "divide", "load", "call"],
)
def test_what_no_compiler_would_write(home, unchanged, body, code, said):
    file = home.path / "it.wasm"
    extra = "(type $none (func)) (table $t 1 funcref) (func $f (call $f))"
    file.write_bytes(wat2wasm(command(body, extra=extra)))
    home.start([1])
    unchanged()
    message = home.fails(code, "run", "--timeout", "1s", "--", file)
    assert said in message, message


def test_a_loop_in_the_start_section_ends_by_the_time_limit(home, unchanged):
    file = home.path / "it.wasm"
    file.write_bytes(wat2wasm(command(extra="(func $s (loop $l (br $l))) (start $s)")))
    home.start([1])
    unchanged()
    assert "time limit" in home.fails(LIMIT, "run", "--timeout", "1s", "--", file)


def test_a_huge_initial_memory(home, unchanged):
    file = home.path / "it.wasm"
    file.write_bytes(wat2wasm(command(memory="65536")))
    home.start([1])
    unchanged()
    message = home.fails(LIMIT, "run", "--", file)
    assert "memory limit of 256MiB" in message


def test_the_cache_is_ours_and_damage_in_it_is_a_miss(home):
    session = home.start({"n": 1})
    home.ok("run", "--once", "--", guest("counter"))
    folder = home.path / ".cache/pugmark/components"
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0
    for damage in (
        lambda data: data[:-7],
        lambda data: data[:100] + b"\0" * 50 + data[150:],
        lambda data: b"",
    ):
        for file in folder.iterdir():
            file.write_bytes(damage(file.read_bytes()))
        home.ok("run", "--once", "--", guest("counter"))
    assert home.bucket.events(session) == [
        {"n": 1},
        {"count": 1},
        {"count": 2},
        {"count": 3},
        {"count": 4},
    ]


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(home):
    (home.path / "file").write_text("")
    home.env["XDG_CACHE_HOME"] = str(home.path / "file")
    session = home.start({"n": 1})
    home.ok("run", "--once", "--", guest("counter"))
    assert home.bucket.events(session) == [{"n": 1}, {"count": 1}]


def test_links_in_the_cache_are_not_followed(home):
    session = home.start({"n": 1})
    home.ok("run", "--once", "--", guest("counter"))
    folder = home.path / ".cache/pugmark/components"
    victim = home.path / "victim"
    for file in list(folder.iterdir()):
        shutil.copy(file, victim)
        file.unlink()
        file.symlink_to(victim)
    content = victim.read_bytes()
    home.ok("run", "--once", "--", guest("counter"))
    assert victim.read_bytes() == content
    assert home.bucket.events(session)[2:] == [{"count": 2}]


def test_a_changed_file_is_another_component(home):
    file = home.path / "agent.wasm"
    shutil.copy(guest("counter"), file)
    session = home.start({"n": 1})
    home.ok("run", "--once", "--", file)
    shutil.copy(guest("wasi-echo"), file)
    home.ok("run", "--once", "--", file)
    shutil.copy(guest("counter"), file)
    home.ok("run", "--once", "--", file)
    digests = [s["step"]["component"] for s in home.bucket.snapshots(session)[2:]]
    assert digests[0] == digests[2] != digests[1]
    assert home.bucket.bodies(session)[2] == b"nothing to echo"
