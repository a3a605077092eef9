"""`diff`: what two logs have in common, and every place where they part."""

import json

import pytest

from pug import DONE, INVALID, NOT_FOUND, digest, normalised

DIFFERENT = 20


def diff(home, *args):
    return json.loads(home.ok("diff", "--json", *args))


@pytest.fixture
def fork(home):
    """Forks version `at` of a session, with these bodies behind it; the fork becomes current."""

    def make(session, at, *bodies):
        for index, body in enumerate(bodies):
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            (home.path / f"{index}.json").write_bytes(body)
        child = home.ok("fork", "-s", f"{session}:{at}", "0.json").strip()
        for index in range(1, len(bodies)):
            home.ok("push", f"{index}.json")
        return child

    return make


def test_equal_logs(home):
    session = home.start([1], [2])
    assert normalised(home.ok("diff", session, session)) == (
        "--- <id 1>:2  2 events\n+++ <id 1>:2  2 events\n"
        "2 events in common, forked from <id 1>:2\nno difference\n"
    )
    result = diff(home, session)
    assert (result["common"], result["changes"]) == (2, [])
    assert result["counts"] == {"changed": 0, "removed": 0, "added": 0}
    assert home.run("diff", "--exit-code", session, session).code == DONE


def test_two_versions_of_a_session(home):
    session = home.start([1], [2], [3])
    result = diff(home, f"{session}:1", f"{session}:3")
    assert result["a"] == {"session": session, "version": 1, "events": 1}
    assert result["b"] == {"session": session, "version": 3, "events": 3}
    assert result["ancestor"] == {"session": session, "version": 1}
    assert result["common"] == 1
    assert [(c["position"], c["change"], c["b"]["hash"]) for c in result["changes"]] == [
        (1, "added", digest(b"[2]")),
        (2, "added", digest(b"[3]")),
    ]
    assert home.run("diff", "--exit-code", f"{session}:1", session).code == DIFFERENT
    assert home.run("diff", f"{session}:1", session).code == DONE
    backwards = diff(home, session, f"{session}:1")
    assert [c["change"] for c in backwards["changes"]] == ["removed", "removed"]
    assert backwards["counts"] == {"changed": 0, "removed": 2, "added": 0}


def test_forks_entry_by_entry_and_json_by_path(home, fork):
    root = home.start([0], [1])
    a = fork(root, 1, {"kind": "x", "n": 1, "tags": ["a", "b"]}, {"same": True}, {"only": "a"})
    b = fork(root, 1, {"kind": "x", "n": 2, "tags": ["a", "c", "b"], "m": None}, {"same": True})
    result = diff(home, a, b)
    assert (result["common"], result["ancestor"]) == (1, {"session": root, "version": 1})
    assert result["counts"] == {"changed": 1, "removed": 1, "added": 0}
    changed, removed = result["changes"]
    assert (changed["position"], changed["change"], changed["attributes"]) == (1, "changed", [])
    assert changed["body"] == {
        "as": "json",
        "changes": [
            {"op": "added", "path": "/m", "to": None},
            {"op": "changed", "path": "/n", "from": 1, "to": 2},
            {"op": "added", "path": "/tags/1", "to": "c"},
        ],
    }
    assert (removed["position"], removed["a"]["name"]) == (3, "2.json")
    assert normalised(home.ok("diff", a, b)) == (
        "--- <id 1>:2  4 events\n"
        "+++ <id 2>:1  3 events\n"
        "1 event in common, forked from <id 3>:1\n"
        "@1 ~ 0.json\n"
        "  + /m: null\n"
        "  ~ /n: 1 → 2\n"
        '  + /tags/1: "c"\n'
        "@3 - <hash 1>        13 B  application/json  2.json\n"
        "1 changed, 1 removed, 0 added\n"
    )
    home.ok("link", "other", "-s", a)
    assert diff(home, "other") == result


def test_descriptions(home):
    session = home.start()
    home.push([1], "--name", "a", "--meta", "k=1")
    other = home.start()
    home.push([1], "--name", "b", "--meta", "l=2")
    [change] = diff(home, session, other)["changes"]
    assert change["body"] == {"as": "same"}
    assert change["attributes"] == [
        {"name": "name", "from": "a", "to": "b"},
        {"name": "metadata.k", "from": "1"},
        {"name": "metadata.l", "to": "2"},
    ]
    assert home.ok("diff", session, other).splitlines()[3:-1] == [
        "@0 ~ b",
        '  ~ name: "a" → "b"',
        '  - metadata.k: "1"',
        '  + metadata.l: "2"',
    ]


def test_sessions_without_a_common_ancestor(home):
    a, b = home.start([1], [2]), home.start([1], [3])
    result = diff(home, a, b)
    assert (result["ancestor"], result["common"]) == (None, 1)
    assert home.ok("diff", a, b).splitlines()[2] == "1 event in common"


def test_text_and_bytes(home):
    a = home.start("one\ntwo\nthree\n", b"\xff\x00", ' {"a": 1}', "")
    b = home.start("one\n2\n2.5\nthree\n", b"\xff\x01\x02", '{"a":1}', "\x1b[31m")
    text, binary, spelling, escaped = diff(home, a, b)["changes"]
    assert text["body"] == {"as": "text", "line": 2, "removed": ["two"], "added": ["2", "2.5"]}
    assert binary["body"] == {"as": "bytes"}
    assert (binary["a"]["size"], binary["b"]["size"]) == (2, 3)
    assert spelling["body"] == {"as": "json", "changes": []}
    assert normalised(home.ok("diff", a, b)).splitlines()[3:-1] == [
        "@0 ~",
        "  line 2",
        "  - two",
        "  + 2",
        "  + 2.5",
        "@1 ~",
        "  - <hash 1>  2 B",
        "  + <hash 2>  3 B",
        "@2 ~",
        "  ~ the same JSON, written differently",
        "@3 ~",
        "  line 1",
        "  + \\u{1b}[31m",
    ]


def test_large_bodies_are_compared_by_hash(home):
    a, b = home.start("1" * 5 * 2**20), home.start("2" * 5 * 2**20)
    [change] = diff(home, a, b)["changes"]
    assert change["body"] == {"as": "bytes"}


def test_long_values_are_shortened_as_text_and_whole_as_json(home):
    a, b = home.start({"t": "x"}), home.start({"t": "y" * 1000})
    assert f'"{"y" * 199}… (1002 characters)' in home.ok("diff", a, b)
    assert diff(home, a, b)["changes"][0]["body"]["changes"][0]["to"] == "y" * 1000


def test_a_long_shared_history_is_not_read(home):
    root = home.start()
    files = []
    for n in range(200):
        (home.path / f"{n}").write_text(str(n))
        files.append(n)
    home.ok("push", *files)
    (home.path / "seed").write_text("seed")
    a, b = home.ok("fork", "-s", root, "seed", "seed").split()
    home.push([1])
    # What both share is not looked at: its nodes may be gone.
    nodes = [hash for level in home.bucket.tip(root)["log"]["levels"] for hash in level]
    assert len(nodes) == 6
    for node in nodes:
        (home.bucket.path / "objects" / node).unlink()
    result = diff(home, a, b)
    assert (result["common"], result["counts"]["added"]) == (201, 1)


def test_wrong_arguments(home):
    session = home.start([1])
    assert "no session" in home.fails(NOT_FOUND, "diff", "nothing", session)
    assert "version 9" in home.fails(NOT_FOUND, "diff", f"{session}:9", session)
    assert home.run("diff").code == INVALID
