"""What every command has: JSON, quiet, help with examples, completions, manual pages; and terminals."""

import json
import os
import re
import subprocess

import pytest

from pug import BIN, DONE, INVALID, NOT_FOUND, PAUSE, digest, normalised
from terminal import on_terminal

HELLO = '{"kind":"user_message","text":"hi"}\n'
ESCAPE = "\x1b["


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def commands(home):
    listing = home.ok("--help").split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listing.splitlines() if re.match(r"  \w", line)]


@pytest.fixture
def branches(home):
    """A root with two events, and a fork of its version 1."""
    root = home.start(flags=["--handler", "triage", "--meta", "team=core"])
    home.push(HELLO)
    home.push("plain", "--name", "note.txt")
    (home.path / "turn.json").write_text('{"turn":1}')
    fork = home.ok("fork", "-s", f"{root}:1", "turn.json").strip()
    home.ok("link", "experiment")
    return root, fork


def test_json_of_sessions_refs_and_context(home, branches):
    root, fork = branches
    [newest, oldest] = lines(home.ok("sessions", "--json"))
    assert newest.pop("created") > oldest.pop("created")
    assert newest == {"session": fork, "refs": ["experiment"], "current": True}
    assert oldest == {"session": root, "refs": [], "current": False}
    assert lines(home.ok("refs", "--json")) == [{"name": "experiment", "session": fork}]
    assert json.loads(home.ok("context", "--json")) == {
        "bucket": f"file://{home.path}/.pugmark/buckets/default/",
        "session": fork,
        "version": 0,
        "events": 2,
        "state": "due",
    }


def test_json_of_a_context_without_a_session(home):
    assert json.loads(home.ok("--json", "context"))["session"] is None


def test_json_of_what_changes_things(home):
    session = json.loads(home.ok("start", "--json"))["session"]
    pushed = json.loads(home.ok("push", "--json", "--name", "a", "--meta", "k=v", stdin=HELLO))
    assert pushed == {
        "session": session,
        "version": 1,
        "kind": "checkpoint",
        "repeated": False,
        "objects": [
            {
                "hash": digest(HELLO.encode()),
                "size": len(HELLO),
                "event": "push",
                "stored": "inline",
                "name": "a",
                "content_type": "application/json",
                "metadata": {"k": "v"},
            }
        ],
    }
    assert json.loads(home.ok("link", "--json", "x")) == {"name": "x", "session": session}
    assert json.loads(home.ok("switch", "--json", "x")) == {"session": session}
    assert json.loads(home.ok("unlink", "--json", "x")) == {"name": "x", "session": session}
    (home.path / "a.json").write_text("1")
    (home.path / "b.json").write_text("2")
    children = lines(home.ok("fork", "--json", "a.json", "b.json"))
    assert [c["parent"] for c in children] == [{"session": session, "version": 1}] * 2
    assert [c["objects"][0]["name"] for c in children] == ["a.json", "b.json"]
    assert json.loads(home.ok("context", "--json"))["session"] == children[1]["session"]
    hash = digest(HELLO.encode())
    assert json.loads(home.ok("pull", "--json", hash[:14], "-o", "out")) == {
        "path": "out",
        "hash": hash,
        "size": len(HELLO),
    }


def test_json_of_objects_stat_and_cat(home, branches):
    root, _ = branches
    home.push(b"\xff\x00", "-s", root)
    home.push(' {"b": 1.50,\n "a": 12345678901234567890123}', "-s", root)
    listed = lines(home.ok("objects", "-s", root, "--json"))
    assert [entry["position"] for entry in listed] == [0, 1, 2, 3]
    assert [entry.get("name") for entry in listed] == [None, "note.txt", None, None]
    assert lines(home.ok("objects", "-s", root, "-n", "1", "--json")) == listed[-1:]
    stat = json.loads(home.ok("stat", "-s", root, "--json", listed[1]["hash"]))
    assert stat | {"position": 1} == listed[1]
    bodies = lines(home.ok("cat", "-s", root, "--json"))
    assert [{k: v for k, v in b.items() if k in listed[0]} for b in bodies][0] == listed[0]
    assert bodies[0]["json"] == json.loads(HELLO)
    assert bodies[1]["text"] == "plain"
    assert bodies[2]["base64"] == "/wA="
    raw = home.ok("cat", "-s", root, "--json").splitlines()[3]
    assert '"json":{"b":1.50,"a":12345678901234567890123}' in raw
    one = home.ok("cat", "-s", root, "--json", listed[3]["hash"])
    assert json.loads(one)["json"] == bodies[3]["json"]


def test_json_of_log(home, branches):
    root, fork = branches
    first, second = lines(home.ok("log", "--json"))
    assert first.pop("created") <= first.pop("updated")
    assert first == {
        "type": "session",
        "session": root,
        "depth": 0,
        "refs": [],
        "handler": "triage",
        "metadata": {"team": "core"},
        "version": 2,
        "events": 2,
        "state": "due",
        "current": False,
    }
    assert second["parent"] == {"session": root, "version": 1}
    assert (second["depth"], second["refs"], second["current"]) == (1, ["experiment"], True)
    home.ok("run", "--once", "--", "true")
    records = lines(home.ok("log", "-A", "--json"))
    assert [(r["type"], r["session"], r["version"]) for r in records] == [
        ("session", root, 2),
        ("snapshot", root, 0),
        ("snapshot", root, 1),
        ("snapshot", root, 2),
        ("session", fork, 1),
        ("snapshot", fork, 0),
        ("snapshot", fork, 1),
    ]
    step = records[-1]
    assert step["step"] == {"handler": "triage", "snapshot": 0}
    assert (step["ended"], step["objects"], step["events"]) == ("empty", [], 2)
    assert records[2]["objects"][0]["hash"] == digest(HELLO.encode())
    assert [r["version"] for r in lines(home.ok("log", "-n1", "--json"))] == [2, 2, 1, 1]


def test_errors_in_json(home):
    home.start()
    result = home.run("cat", "0000", "--json")
    assert (result.code, result.out) == (NOT_FOUND, "")
    error = json.loads(result.err)
    assert (error["kind"], error["exit_code"]) == ("not-found", NOT_FOUND)
    assert "`0000`" in error["error"] and "pugmark objects" in error["hint"]
    wrong = home.run("sessions", "--wrong", "--json")
    assert wrong.code == INVALID
    assert json.loads(wrong.err)["kind"] == "invalid"
    assert "--wrong" in json.loads(wrong.err)["error"]
    failed = home.run("run", "--once", "--json", "--", "false")
    last = json.loads(failed.err.splitlines()[-1])
    assert (last["kind"], last["exit_code"]) == ("handler-failed", failed.code)


def test_quiet(home):
    home.start()
    result = home.run("run", "-q", "--", "true")
    assert (result.code, result.out, result.err) == (DONE, "", "")
    assert home.run("cat", "-q", "0000").err.startswith("error: ")


def test_every_command_has_help_with_examples(home):
    found = commands(home)
    assert {"start", "diff", "verify", "gc", "rm", "skills", "completions", "man"} <= set(found)
    for command in found:
        text = home.ok(command, "--help")
        assert "Examples:\n" in text, command
        for line in text.split("Examples:\n")[1].split("\n\n")[0].splitlines():
            assert re.search(r"\b(pugmark|pug)\b", line), (command, line)
    assert "Examples:\n" in home.ok("--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(home, shell):
    script = home.ok("completions", shell)
    assert "pugmark" in script and "PUGMARK_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)


def completed(home, *words, env=None):
    """What bash is offered for the last of these words."""
    asks = {"PUGMARK_COMPLETE": "bash", "_CLAP_COMPLETE_INDEX": str(len(words)), "_CLAP_IFS": "\n"}
    result = home.run("--", "pugmark", *words, env=asks | (env or {}))
    assert (result.code, result.err) == (DONE, "")
    return result.out.splitlines()


def test_completes_commands_sessions_names_and_hashes(home, branches):
    root, fork = branches
    assert "sessions" in completed(home, "se")
    assert {"experiment", fork, root} <= set(completed(home, "switch", ""))
    assert "experiment" in completed(home, "objects", "-s", "exp")
    assert root in completed(home, "log", "-s", root[:30])
    assert "experiment" in completed(home, "unlink", "")
    assert root not in completed(home, "unlink", "")
    hash = digest(HELLO.encode())[7:]
    assert hash[:12] in completed(home, "cat", hash[:6])
    other = home.path / "other"
    other.mkdir()
    assert root not in completed(home, "-b", other, "switch", "")
    assert root not in completed(home, "switch", "", env={"PUGMARK_BUCKET": str(other)})


def test_completion_before_the_first_use_touches_nothing(home):
    assert "sessions" in completed(home, "")
    completed(home, "switch", "")
    assert list(home.path.iterdir()) == []


def test_completion_works_in_bash(home, branches):
    script = home.ok("completions", "bash")
    (home.path / "completion.bash").write_text(script)
    ask = (
        "source completion.bash; COMP_WORDS=(pugmark switch expe); COMP_CWORD=2; COMP_TYPE=9; "
        "_clap_complete_pugmark pugmark expe switch; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", ask], cwd=home.path, env=home.env, capture_output=True, check=True
    )
    assert done.stdout.decode().split() == ["experiment"]


def test_manual_pages(home):
    assert ".TH pugmark 1" in home.ok("man")
    assert home.ok("man", "pages/man1") == "pages/man1\n"
    written = {page.name for page in (home.path / "pages/man1").iterdir()}
    assert {"pugmark.1", "pugmark-push.1", "pugmark-diff.1"} <= written
    assert len(written) >= len(commands(home))
    assert "pugmark-compile-component.1" not in written


def test_skills(home):
    names = ["using-the-pugmark-cli", "writing-handlers", "replaying-and-debugging"]
    listed = lines(home.ok("skills", "--json"))
    assert [skill["name"] for skill in listed] == names
    assert all(skill["description"] in home.ok("skills") for skill in listed)
    for name in names:
        text = home.ok("skills", name)
        assert text.startswith(f"---\nname: {name}\ndescription: ")
    installed = home.ok("skills", "install").splitlines()
    assert installed == [f".claude/skills/{name}/SKILL.md" for name in names]
    assert (home.path / installed[0]).read_text() == home.ok("skills", names[0])
    home.ok("skills", "install", home.path / "elsewhere")
    assert (home.path / "elsewhere/writing-handlers/SKILL.md").exists()
    assert "pugmark skills" in home.fails(NOT_FOUND, "skills", "nothing")


@pytest.mark.parametrize(
    "name", ["using-the-pugmark-cli", "writing-handlers", "replaying-and-debugging"]
)
def test_skills_name_only_commands_and_flags_that_exist(home, name):
    text = home.ok("skills", name)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    inline = re.findall(r"`(pugmark [^`]*)`", text)
    used = [line for block in blocks for line in block.splitlines()] + inline
    help = {}
    for line in used:
        for call in re.findall(r"(?:^|[\s(|])pugmark ([^|)#]*)", line):
            words = call.split(" -- ")[0].split()
            if not words or words[0] == "…":
                continue
            command = words[0]
            help[command] = help.get(command) or home.ok(command, "--help")
            for flag in (word for word in words[1:] if re.match(r"--?[a-z]", word, re.I)):
                name = flag.split("=")[0]
                assert re.search(rf"(^|\s){re.escape(name)}[ ,=\n]", help[command], re.M), call
    assert help


def test_the_skills_handlers_work(home):
    """The programs and commands that `writing-handlers` shows, as they stand there."""
    text = home.ok("skills", "writing-handlers")
    (home.path / "agent.py").write_text(re.search(r"```python\n(.*?)```", text, re.S)[1])
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    path = {"PATH": f"{BIN.parent}:{home.env['PATH']}"}

    def shell(block):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=home.path,
            env=home.env | path,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    assert '{"kind":"echo","text":"HELLO"}\n' in shell(blocks[0]).replace('": "', '":"').replace(
        '", "', '","'
    )
    shell(blocks[1])
    assert home.ok("cat") == '{"count":0}\n{"count":1}\n{"count":2}\n'
    shell(blocks[2])
    assert json.loads(home.ok("context", "--json"))["state"] == "at-rest"


# Filters, and trees of many forks.


def test_log_of_many_forks_counts_what_it_leaves_out(home):
    root = home.start(HELLO)
    (home.path / "seed.json").write_text("1")
    forks = home.ok("fork", "-s", root, *["seed.json"] * 40).split()
    home.ok("link", "old", "-s", forks[3])
    home.ok("switch", forks[5])
    drawn = home.ok("log").splitlines()
    assert drawn[0].startswith(root)
    kept = [forks[3], forks[5], *forks[28:]]
    assert [line[3:39] for line in drawn[1:-1]] == kept
    assert drawn[-1] == "└─ … 26 more forks; --all-forks draws them"
    every = home.ok("log", "--all-forks").splitlines()
    assert [line[3:39] for line in every[1:]] == forks
    assert every[-1].startswith("└─ ")
    assert len(lines(home.ok("log", "--json"))) == 41


def test_a_deep_tree_stays_narrow(home):
    home.start(HELLO)
    (home.path / "seed.json").write_text("1")
    for _ in range(40):
        home.ok("fork", "seed.json")
    drawn = home.ok("log").splitlines()
    assert len(drawn) == 41
    assert max(map(len, drawn)) < 150
    assert drawn[-1].startswith("  40: └─ ")


def test_log_filters(home):
    root = home.start(HELLO)
    (home.path / "seed.json").write_text("1")
    one, two = home.ok("fork", "-s", root, "seed.json", "seed.json").split()
    home.ok("link", "exp-one", "-s", one)
    home.ok("link", "exp-two", "-s", two)
    home.ok("run", "--once", "--handler", "special=true")

    def shown(*flags):
        return {record["session"] for record in lines(home.ok("log", "--json", *flags))}

    assert shown() == {root, one, two}
    assert shown("--ref", "exp-one") == {one}
    assert shown("--ref", "exp-*") == {one, two}
    assert shown("--handler", "special") == {two}
    assert shown("--since", "1h") == {root, one, two}
    assert shown("--since", "2999-01-01") == set()
    assert "yesterday" in home.fails(INVALID, "log", "--since", "yesterday")
    assert "pugmark refs" in home.fails(NOT_FOUND, "log", "--ref", "nothing-*")
    drawn = home.ok("log", "--ref", "exp-one").splitlines()
    assert [line[:39].lstrip("└─ ")[:36] for line in drawn[:2]] == [root, one]
    assert drawn[2] == "… 1 other session of this tree left out by the filters"
    tree = home.ok("log", "--handler", "special", "-n", "1")
    assert one not in tree and "step by special" in tree
    assert tree.count("checkpoint") == 1


def test_log_since_finds_the_first_version(home):
    session = home.start()
    for n in range(5):
        home.push([n])
    times = [snapshot["created"] for snapshot in home.bucket.snapshots(session)]
    shown = lines(home.ok("log", "-A", "--json", "--since", times[3]))
    expected = [version for version, time in enumerate(times) if time >= times[3]]
    assert [r["version"] for r in shown if r["type"] == "snapshot"] == expected


# Terminals.


def test_colour_only_where_it_is_wanted(home, branches):
    assert ESCAPE not in home.ok("log", "-A")
    assert ESCAPE in on_terminal(home, "log", "-A")[1]
    assert ESCAPE not in on_terminal(home, "log", "-A", env={"NO_COLOR": "1"})[1]
    assert ESCAPE not in on_terminal(home, "log", "-A", env={"TERM": "dumb"})[1]
    assert ESCAPE in home.ok("log", "-A", env={"CLICOLOR_FORCE": "1"})
    assert ESCAPE not in home.ok("log", "-A", env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"})
    assert ESCAPE not in on_terminal(home, "log", "--json")[1]
    coloured = on_terminal(home, "log", "-A")[1]
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == home.ok("log", "-A")


def test_errors_are_coloured_on_a_terminal(home):
    code, shown = on_terminal(home, "cat", "0000")
    assert code == NOT_FOUND
    assert shown.startswith("\x1b[1;31merror:\x1b[0m ")


def test_pager_on_a_terminal_only(home, branches):
    pager = {"PAGER": "sed 's/^/|/'", "NO_COLOR": "1"}
    plain = home.ok("log")
    assert home.ok("log", env=pager) == plain
    paged = "".join(f"|{line}\n" for line in plain.splitlines())
    assert on_terminal(home, "log", env=pager) == (DONE, paged)
    assert on_terminal(home, "log", "--no-pager", env=pager) == (DONE, plain)
    other = pager | {"PUGMARK_PAGER": "sed 's/^/>/'"}
    assert on_terminal(home, "log", env=other)[1].startswith(f">{plain[:36]}")
    assert on_terminal(home, "log", env=pager | {"PAGER": ""}) == (DONE, plain)
    assert on_terminal(home, "log", env=pager | {"PAGER": "no-such-pager"}) == (DONE, plain)
    for command in (["objects"], ["cat"], ["sessions"], ["diff", branches[0]]):
        assert on_terminal(home, *command, env=pager)[1].startswith("|"), command
    assert not on_terminal(home, "context", env=pager)[1].startswith("|")


def test_an_error_is_shown_after_the_pager(home):
    home.start()
    code, shown = on_terminal(home, "log", "-s", "0190", env={"PAGER": "sed 's/^/|/'", "NO_COLOR": "1"})
    assert code == NOT_FOUND
    assert shown.startswith("error: ")


def test_a_reader_that_leaves_the_pager_ends_the_command(home):
    session = home.start()
    for _ in range(3):
        home.push(os.urandom(100_000).hex())
    code, shown = on_terminal(home, "cat", "-s", session, env={"PAGER": "head -c 10"})
    assert (code, len(shown)) == (DONE, 10)


def test_cat_on_a_terminal(home):
    home.start()
    home.push('{"b":[1,{}],"a":"x"}')
    home.push("red \x1b[31m text", "--name", "t")
    home.push(b"\xff\x00\x01")
    plain = {"NO_COLOR": "1"}
    object_, text, binary = (digest(b) for b in (b'{"b":[1,{}],"a":"x"}', b"red \x1b[31m text", b"\xff\x00\x01"))
    code, shown = on_terminal(home, "cat", object_, env=plain)
    assert (code, shown) == (DONE, '{\n  "b": [\n    1,\n    {}\n  ],\n  "a": "x"\n}\n')
    assert "\x1b[36m" in on_terminal(home, "cat", object_)[1]
    assert on_terminal(home, "cat", text, env=plain)[1] == "red \\u{1b}[31m text\n"
    assert on_terminal(home, "cat", text, "--raw", env=plain)[1] == "red \x1b[31m text"
    code, shown = on_terminal(home, "cat", binary, env=plain)
    assert code == INVALID
    assert "--raw" in shown and "pugmark pull" in shown
    assert home.run("cat", binary).code == DONE
    log = on_terminal(home, "cat", env=plain)[1].splitlines()
    assert log == ['{"b":[1,{}],"a":"x"}', "red \\u{1b}[31m text", f"(3 B of bytes, {binary})"]


def test_skills_are_rendered_on_a_terminal(home):
    shown = on_terminal(home, "skills", "using-the-pugmark-cli", env={"NO_COLOR": "1"})[1]
    assert shown.startswith("Using the pugmark CLI\n")
    assert "    pugmark start" in shown
    assert "```" not in shown and "description:" not in shown


def test_progress_of_long_transfers_on_a_terminal_only(home):
    home.start()
    size = 200 * 2**20
    (home.path / "large").write_bytes(bytes(size))
    code, shown = on_terminal(home, "push", "large")
    assert code == DONE
    # How fast the disk is decides whether there is time to show anything; what is shown goes away.
    assert "storing" not in shown or shown.endswith("large\n")
    assert home.run("pull", digest(bytes(size))[:20], "-o", "out").err == ""


@pytest.mark.parametrize(
    "args",
    [["log", "-A"], ["objects"], ["sessions"], ["cat"], ["log", "--json", "-A"], ["cat", "--json"]],
    ids=" ".join,
)
def test_a_closed_pipe_is_no_error(home, args):
    home.start()
    for n in range(40):
        home.push(str(n) * 1000)
    reader, writer = os.pipe()
    os.close(reader)
    process = home.spawn(*args, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, message = process.communicate(timeout=30)
    assert (process.returncode, message) == (DONE, b"")


def test_startup_does_not_grow(home):
    """Nothing is done before it is needed: a push makes as many files as ever."""
    home.start()
    home.push(HELLO)
    assert normalised(home.ok("push", stdin=HELLO)) == "<hash 1>\n"
    assert not (home.path / ".cache").exists()


def test_a_pause_is_listed(home):
    session = home.start()
    home.ok("push", "--content-type", PAUSE, stdin="waiting")
    assert lines(home.ok("objects", "-s", session, "--json"))[0]["content_type"] == PAUSE
