"""What `inspect` says of files, before anything runs."""

import json

from wasmtime import wat2wasm

from pug import INVALID, NOT_FOUND, UNUSABLE, digest, guest


def inspect(home, file, code=0):
    result = home.run("inspect", file, "--json")
    assert result.code == code, result.err
    return json.loads(result.out)


def test_a_typed_handler(home):
    session = home.start({"until": 1})
    found = inspect(home, guest("counter"))
    assert (found["world"], found["kind"]) == ("typed", "module")
    home.ok("run", "--", guest("counter"))
    step = home.bucket.tip(session)["step"]
    assert step["component"] == found["digest"] == digest(home.bucket.object(found["digest"]))
    assert found["size"] == len(home.bucket.object(found["digest"]))
    assert found["exports"] == ["pugmark:handler/step@0.1.0"]
    assert {i["access"] for i in found["imports"]} <= {"served"}
    assert any(p["role"] == "processed-by" for p in found["producers"])
    text = home.ok("inspect", guest("counter"))
    assert text.startswith("world      typed: ") and found["digest"] in text


def test_a_program_shows_what_it_is_denied(home):
    found = inspect(home, guest("wasi-echo"))
    assert found["world"] == "command"
    access = {i["name"].split("@")[0]: i["access"] for i in found["imports"]}
    assert access["wasi:cli/stdin"] == "served"
    assert access["wasi:filesystem/types"] == "denied"
    assert "wasi:filesystem/preopens@" in home.ok("inspect", guest("wasi-echo"))
    assert "denies every call" in home.ok("inspect", guest("wasi-echo"))


def test_what_is_refused_is_named(home):
    text = """(component (import "wasi:keyvalue/store@0.2.0" (instance))
      (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)))"""
    file = home.path / "a.wasm"
    file.write_bytes(wat2wasm(text))
    found = inspect(home, file, UNUSABLE)
    assert found["imports"] == [{"name": "wasi:keyvalue/store@0.2.0", "access": "refused"}]
    assert "wasi:keyvalue/store@0.2.0" in found["problem"]
    assert "world" not in found and "digest" not in found
    file.write_bytes(wat2wasm('(module (import "env" "magic" (func)) (func (export "add")))'))
    found = inspect(home, file, UNUSABLE)
    assert found["imports"] == [{"name": "env.magic", "access": "refused"}]
    assert found["exports"] == ["add"]


def test_handlers_of_the_bucket(home):
    added = json.loads(home.ok("handlers", "add", "count", guest("counter"), "--json"))
    for name in ["count", "count@1", "count@latest", added["digest"]]:
        found = inspect(home, name)
        assert (found["digest"], found["kind"]) == (added["digest"], "component")
    assert "has no handler `other`" in home.fails(NOT_FOUND, "inspect", "other")


def test_what_is_no_webassembly(home):
    home.fails(UNUSABLE, "inspect", home.script("print()"))
    home.fails(NOT_FOUND, "inspect", "absent.wasm")
    home.fails(NOT_FOUND, "inspect", "./absent")
    home.fails(INVALID, "inspect", home.path)
