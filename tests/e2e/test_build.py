"""`build` from what is there: Cargo packages of each kind, and WebAssembly that others have built."""

import json
import shutil

import pytest

from pug import INVALID, NOT_FOUND, ROOT, UNUSABLE, guest
from test_new import author  # noqa: F401

PROGRAM = """
fn main() {
    let lines = std::io::stdin().lines().count();
    if lines < 2 {
        // {"seen":1}
        println!(r#"{{"data":"eyJzZWVuIjoxfQ=="}}"#);
    }
}
"""


def package(home, name, main=None, lib=None, manifest=""):
    folder = home.path / name
    (folder / "src").mkdir(parents=True)
    text = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n{manifest}\n[workspace]\n'
    (folder / "Cargo.toml").write_text(text)
    for file, text in ("main.rs", main), ("lib.rs", lib):
        if text is not None:
            (folder / "src" / file).write_text(text)
    return folder


def build(home, *args, **options):
    return json.loads(home.ok("build", *args, "--json", timeout=600, **options))


@pytest.mark.parametrize("name", ["counter", "wasi-echo"])
def test_webassembly_becomes_the_component_that_runs(home, name):
    built = build(home, guest(name), "-o", "made.wasm")
    made = home.path / "made.wasm"
    assert made.stat().st_size == built["size"]
    session = home.start({"until": 1})
    home.ok("run", "--once", "--", guest(name))
    assert home.bucket.tip(session)["step"]["component"] == built["digest"]
    again = build(home, made, "-o", "again.wasm")
    assert again["digest"] == built["digest"]
    assert made.read_bytes() == (home.path / "again.wasm").read_bytes()
    line = home.ok("build", guest(name)).split()
    assert (line[0], line[-1]) == (built["digest"], f"{name}.wasm")


def test_a_program_in_rust(author):  # noqa: F811
    folder = package(author, "seen", main=PROGRAM)
    built = build(author, folder)
    assert (built["path"], built["world"], built["language"]) == ("seen.wasm", "command", "rust")
    session = author.start({"until": 1})
    author.ok("run", "--", "./seen.wasm")
    assert author.bucket.events(session) == [{"until": 1}, {"seen": 1}]
    assert author.bucket.tip(session)["step"]["component"] == built["digest"]


def test_what_does_not_compile(author):  # noqa: F811
    folder = package(author, "broken", main="fn main() { oops }")
    failed = author.run("build", folder, timeout=600)
    assert failed.code == UNUSABLE and failed.out == ""
    assert "cannot find value `oops`" in failed.err
    assert "cannot build" in failed.err and not (author.path / "broken.wasm").exists()
    failed = author.run("build", folder, "--json", timeout=600)
    [error] = [json.loads(line) for line in failed.err.splitlines()]
    assert error["kind"] == "handler-unusable" and "cannot find value `oops`" in error["error"]
    folder = package(author, "useless", lib="pub fn add() {}", manifest="[lib]\ncrate-type=['cdylib']")
    error = author.run("build", folder, timeout=600)
    assert error.code == UNUSABLE and "no handler" in error.err


def test_packages_that_are_not_clear(author):  # noqa: F811
    folder = package(author, "two", main=PROGRAM)
    (folder / "src/bin").mkdir()
    (folder / "src/bin/other.rs").write_text(PROGRAM)
    result = author.run("build", folder)
    assert result.code == UNUSABLE and "several programs" in result.err
    whole = author.path / "whole"
    shutil.copytree(folder, whole / "two")
    (whole / "two/Cargo.toml").write_text(
        (whole / "two/Cargo.toml").read_text().replace("[workspace]", "")
    )
    (whole / "Cargo.toml").write_text('[workspace]\nmembers = ["two"]\nresolver = "3"\n')
    result = author.run("build", whole)
    assert result.code == UNUSABLE and "one of its packages: two" in result.err


def test_what_cannot_be_built(home):
    assert "nothing to build" in home.fails(NOT_FOUND, "build", home.path)
    home.fails(NOT_FOUND, "build", "absent.wasm")
    home.fails(INVALID, "build", home.script("puts 1", "agent.rb"))
    (home.path / "agent.wasm").write_bytes(guest("counter").read_bytes())
    before = (home.path / "agent.wasm").read_bytes()
    error = home.fails(INVALID, "build", "agent.wasm")
    assert "-o FILE" in error and (home.path / "agent.wasm").read_bytes() == before
    home.fails(UNUSABLE, "build", home.script("\0asm", "bad.wasm"), "-o", "x.wasm")
    assert not (home.path / "x.wasm").exists()


def test_without_cargo_it_says_where_to_get_it(home):
    home.env["PATH"] = "/nowhere"
    result = home.run("build", ROOT / "examples/counter")
    assert result.code == UNUSABLE and "https://rustup.rs" in result.err
