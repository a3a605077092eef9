"""`new`, `build`, `run`, `replay` as a user would on an empty home, in each language."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from pug import INVALID, ROOT, Home
from python_components import COMPONENTIZE

INPUT = {"kind": "input", "text": "hello"}
ECHO = {"kind": "echo", "text": "HELLO"}


@pytest.fixture
def author(tmp_path):
    """An empty home, with the toolchains of this machine: they are not in the home."""
    real = Path(os.environ["HOME"])
    tools = {
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(real / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(real / ".rustup")),
        # One target folder for all tests: dependencies are built once.
        "CARGO_TARGET_DIR": str(ROOT / "target/new"),
    }
    return Home(tmp_path / "author", **tools)


def build(home, folder):
    return json.loads(home.ok("build", "--json", cwd=folder, timeout=600))


def tool(home, folder, *argv):
    done = subprocess.run(argv, cwd=folder, env=home.env, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode() + done.stderr.decode()


def ran(home, *argv, cwd):
    """The events of a session that was run so from an input on, and its steps' component."""
    session = home.start(INPUT)
    home.ok("run", "--", *argv, cwd=cwd)
    steps = [s["step"] for s in home.bucket.snapshots(session) if "step" in s]
    return home.bucket.events(session), {step.get("component") for step in steps}


def test_rust(author):
    made = json.loads(author.ok("new", "my-agent", "--lang", "rust", "--json"))
    folder = author.path / "my-agent"
    own = {path for path in made["files"] if not path.startswith("vendor/")}
    assert own == {"Cargo.toml", "README.md", ".gitignore", "src/lib.rs"}
    assert "1 passed" in tool(author, folder, "cargo", "test", "--quiet")
    built = build(author, folder)
    assert (built["path"], built["world"]) == ("my-agent.wasm", "typed")
    assert built["size"] < 250_000
    events, components = ran(author, "./my-agent.wasm", cwd=folder)
    assert events == [INPUT, ECHO] and components == {built["digest"]}
    assert "2 steps replayed, identical" in author.ok("replay")
    author.ok("handlers", "add", "my-agent", "my-agent.wasm", cwd=folder)
    session = author.start(INPUT, flags=["--handler", "my-agent"])
    author.ok("run")
    assert author.bucket.events(session) == [INPUT, ECHO]


def test_rust_gives_the_same_bytes_in_any_folder(author, tmp_path):
    digests = set()
    for name in "one", "another folder":
        place = tmp_path / name
        place.mkdir()
        author.ok("new", "my-agent", "--lang", "rust", cwd=place)
        author.env["CARGO_TARGET_DIR"] = str(place / "target")
        digests.add(build(author, place / "my-agent")["digest"])
        wasm = (place / "my-agent/my-agent.wasm").read_bytes()
        for path in author.env["CARGO_HOME"], author.env["RUSTUP_HOME"], str(tmp_path):
            assert path.encode() not in wasm
    assert len(digests) == 1


def test_python(author):
    author.ok("new", "my-agent", "--lang", "python")
    folder = author.path / "my-agent"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert files == {
        ".gitignore",
        "README.md",
        "handler.py",
        "requirements.txt",
        "test_handler.py",
    }
    assert "OK" in tool(author, folder, "python", "-m", "unittest")
    events, components = ran(author, "python", "handler.py", cwd=folder)
    assert events == [INPUT, ECHO] and components == {None}
    author.env["PATH"] = f"{COMPONENTIZE}:{author.env['PATH']}"
    built = build(author, folder)
    assert (built["path"], built["language"]) == ("my-agent.wasm", "python")
    events, components = ran(author, "./my-agent.wasm", cwd=folder)
    assert events == [INPUT, ECHO] and components == {built["digest"]}
    assert "2 steps replayed, identical" in author.ok("replay")


@pytest.mark.parametrize("name", ["My-Agent", "a/b", "../a", "std", "2nd", "a-"])
def test_a_name_that_cannot_be_one(author, name):
    author.fails(INVALID, "new", name, "--lang", "rust")
    assert not list(author.path.iterdir())


def test_what_is_there_is_left_alone(author):
    (author.path / "mine").mkdir()
    error = author.fails(INVALID, "new", "mine", "--lang", "python")
    assert "`mine` exists already" in error
    assert not list((author.path / "mine").iterdir())
    author.fails(INVALID, "new", "other", "--lang", "cobol")


def test_the_next_steps_are_said(author):
    made = author.run("new", "my-agent", "--lang", "rust")
    assert made.out == "my-agent\n"
    assert "cd my-agent" in made.err and "pugmark build" in made.err
