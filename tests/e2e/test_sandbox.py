"""What a sandboxed guest can see is closed, and the same wherever it runs.

The probes are in tests/guests; its README says what each has to come to. `circumstances.py` runs them
in copies of one bucket, each under other circumstances.
"""

import base64
import json
import re

import pytest

from circumstances import BODY, OF_THE_SESSION, PROBES, outputs
from pug import digest

NOT_THERE = {"error": "not in this session's log"}


def saw(seen, probe, circumstances="cold"):
    appended = outputs(seen, probe, circumstances)
    body = json.loads(
        [body for entry, body in appended if entry["content-type"] == "application/json"][0]
    )
    return body.get("saw", body)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("circumstances", ["elsewhere", "limits", "warm"])
def test_copies_of_one_session_give_the_same_bytes(seen, probe, circumstances):
    assert outputs(seen, probe, circumstances) == outputs(seen, probe, "cold")


@pytest.mark.parametrize("probe", [probe for probe in PROBES if not OF_THE_SESSION.search(probe)])
def test_a_fresh_session_gives_the_same_bytes(seen, probe):
    assert outputs(seen, probe, "fresh") == outputs(seen, probe, "cold")


def test_decides_and_nan(seen):
    assert saw(seen, "typed.decides") == 1
    for build in ("typed", "wasip1"):
        bits = saw(seen, f"{build}.nan")
        assert bits.pop(5) == 0x7FC0_0000
        assert bits == [0x7FF8_0000_0000_0000] * 6


def test_entries_are_what_the_log_says(seen):
    first, long = saw(seen, "typed.entries")
    body = json.dumps({"probe": "entries", "piece": 777}).encode()
    assert first == {
        "position": 0,
        "event": "push",
        "hash": digest(body),
        "size": len(body),
        "name": None,
        "content-type": "application/json",
        "content-encoding": None,
        "schema-url": None,
        "metadata": [],
        "data": len(body),
        "extra": [],
    }
    assert (long["position"], long["size"], long["data"], long["name"]) == (
        1,
        len(BODY),
        None,
        "long",
    )
    assert long["metadata"] == [["a", "1"], ["b", "2"]]


def test_the_session_is_the_frame(seen):
    info = saw(seen, "typed.session")
    assert (info["agent"], info["snapshot"], info["metadata"]) == ("agent", 2, [["team", "core"]])
    assert info["id"] != saw(seen, "typed.session", "fresh")["id"]


def test_reads(seen):
    total = sum(BODY.encode())
    assert saw(seen, "typed.read-whole") == {
        "size": len(BODY),
        "huge-length": {"len": len(BODY), "sum": total},
    }
    assert [read["len"] for read in saw(seen, "typed.read-past-end")] == [1, 0, 0, 0, 0]
    assert saw(seen, "typed.read-unknown") == [[NOT_THERE, NOT_THERE]] * 5
    assert saw(seen, "typed.read-pieces") == {
        "len": len(BODY),
        "sum": total,
        "reads": -(-len(BODY) // 777),
    }
    told = saw(seen, "objects")
    assert told["bodies"][1] == {"len": len(BODY), "sum": total}


def test_entropy(seen):
    assert saw(seen, "typed.entropy") == {
        "start": None,
        "fold": [None, None],
        "decide": [None, None],
    }
    here, fresh = (saw(seen, "wasip1.entropy", name) for name in ("cold", "fresh"))
    assert here["start"] == fresh["start"]
    clocks = [[(look["wall"], look["monotonic"]) for look in one["fold"]] for one in (here, fresh)]
    assert clocks[0] == clocks[1]
    walls = [look["wall"] for look in here["decide"]]
    assert walls[0] < walls[1]
    assert here["decide"][0]["random"] != here["decide"][1]["random"]
    assert here["decide"][0]["random"] != fresh["decide"][0]["random"]


def test_the_frame_is_closed(seen):
    frame = saw(seen, "command.frame")
    assert frame["args"] == ["agent"]
    lines = [json.loads(line) for line in frame["stdin"].splitlines()]
    assert [line["url"] for line in lines] == ["pugmark:" + line["hash"] for line in lines]
    assert base64.b64decode(lines[1]["data"]).decode() == BODY
    shown = json.dumps(frame)
    assert not re.search(r"127\.0\.0\.1|localhost|Kiritimati|/home|traceparent|FOO", shown, re.I)
    allowed = {
        "PUGMARK_SESSION_ID",
        "PUGMARK_AGENT_ID",
        "PUGMARK_SESSION_METADATA",
        "PUGMARK_SNAPSHOT",
    }
    assert {name for name, _ in frame["env"]} <= allowed


def test_terminals_files_and_sockets_are_denied(seen):
    assert saw(seen, "command.isatty") == [False, False, False]
    assert len(set(saw(seen, "command.preopens"))) == 1 and saw(seen, "command.preopens")[0] != 0
    denied = saw(seen, "command.denied")
    # Its C library answers this one without asking the host.
    assert denied["files"].pop("current_dir") == "allowed"
    assert all(
        result != "allowed" for result in [*denied["files"].values(), *denied["network"].values()]
    )
    assert [denied["others"][name] for name in ("home", "tz")] == ["None", "None"]
    assert denied["others"]["thread"] != "allowed" and denied["others"]["process"] != "allowed"


def test_random(seen):
    reads = saw(seen, "command.random")
    assert [(errno, len(bytes)) for errno, bytes in reads] == [
        (0, 0),
        (0, 1),
        (0, 8),
        (0, 64),
        (0, 64),
    ]
    assert reads[3] != reads[4]
    assert reads[4] != saw(seen, "command.random", "fresh")[4]


def test_streams(seen):
    chunks = saw(seen, "argument.stdin-chunks")
    left = chunks[0][1][1] and sum(got for _, (_, got) in chunks)
    for asked, (errno, got) in chunks:
        assert (errno, got) == (0, min(asked, left))
        left -= got
    assert left == 0
    assert saw(seen, "argument.no-read") is None
    assert saw(seen, "argument.partial-read") == 8
    long, told = outputs(seen, "argument.stdout-permits", "cold")[:2]
    assert (len(long[1]), told[0]["content-type"]) == (2**20 * 3 // 4, "application/json")


def test_time_is_virtual(seen):
    for probe, seconds in [("sleep", 1), ("sleep-long", 3600)]:
        slept = saw(seen, f"command.{probe}")
        for clock in ("monotonic", "wall"):
            assert seconds <= int(slept[clock]) / 1e9 < seconds + 0.01
    rounds = saw(seen, "command.poll")
    assert [sorted(r["happened"]) for r in rounds[:2]] == [[1], [1]]
    assert 1e9 <= rounds[0]["took"] < 1.01e9
    assert all(9 in r["happened"] and r["took"] < 1e6 for r in rounds[2:4])
    assert rounds[4]["errno"] != 0
    waits = saw(seen, "command.busy-wait")
    assert waits["monotonic"] > 0 and waits["wall"] > 0
