"""How many requests each operation takes, counted at the wire."""

import json

import proxies
import pytest


@pytest.fixture
def wire(user, quick):
    recorder = proxies.Recorder(quick.endpoint)
    with proxies.serving(recorder) as server:
        home = user(quick, AWS_ENDPOINT_URL=server.endpoint)
        home.env["PUGMARK_BUCKET"] = quick.bucket()
        home.ok("start")
        recorder.take()
        yield home, recorder


def test_looking_up_the_newest_version(wire):
    """One request says which it is, one reads it; and no more however many there are."""
    home, recorder = wire
    for count in (1, 40):
        for number in range(count):
            home.push({"n": number})
        recorder.take()
        home.ok("cat")
        assert recorder.take()[:2] == ["GET list", "GET snapshots"]


def test_starting_and_pushing(wire):
    home, recorder = wire
    home.ok("start")
    assert recorder.take() == ["PUT manifest.json", "PUT snapshots"]
    home.push({"small": True})
    assert recorder.take() == ["GET list", "GET snapshots", "PUT snapshots"]
    home.push("x" * 5000)
    asked = recorder.take()
    assert sorted(asked) == ["GET list", "GET snapshots", "PUT objects", "PUT snapshots"]
    assert asked[-1] == "PUT snapshots"


def test_steps_of_a_loop(wire):
    """A small step is one request, and a node every 32nd entry."""
    home, recorder = wire
    script = home.script(
        "import base64, json, sys\n"
        "count = len(sys.stdin.readlines())\n"
        "print(json.dumps({'data': base64.b64encode(json.dumps({'n': count}).encode()).decode()}))\n"
    )
    steps = 100
    home.ok("run", "--max-steps", steps, "--", "python3", script)
    asked = recorder.take()
    puts = [request for request in asked if request.startswith("PUT")]
    assert puts.count("PUT snapshots") == steps
    # 100 entries complete three nodes.
    assert puts.count("PUT objects") == 3
    assert len(puts) == steps + 3
    reads = [request for request in asked if not request.startswith("PUT")]
    before = ["GET list", "GET snapshots", "GET manifest.json"]
    assert sorted(reads[:3]) == sorted(before)
    # What was written is not read again but for the nodes, once each.
    assert sorted(reads[3:]) == ["GET objects"] * 3
    assert len(json.loads("[" + ",".join(home.ok("cat").splitlines()) + "]")) == steps
