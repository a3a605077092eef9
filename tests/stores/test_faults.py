"""Faults between the real binary and a store: nothing is doubled and nothing is lost."""

import json
import os

import proxies
import pytest
import reading

UNKNOWN = 7
# Nightly: PUGMARK_FAULT_SEEDS=200.
SEEDS = int(os.environ.get("PUGMARK_FAULT_SEEDS", "8"))

STEP = """
import base64, json, sys
replies = sum(1 for line in sys.stdin if json.loads(line).get("name") == "reply")
body = json.dumps({"reply": replies}).encode()
print(json.dumps({"data": base64.b64encode(body).decode(), "name": "reply"}))
"""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_pushes_and_steps_through_a_bad_network(user, quick, seed):
    url = quick.bucket()
    faults = proxies.Faults(quick.endpoint, seed, per_mille=0)
    with proxies.serving(faults) as server:
        home = user(quick, AWS_ENDPOINT_URL=server.endpoint, PUGMARK_BUCKET=url)
        session = home.start()
        faults.per_mille = 200
        done, unknown = [], []
        for number in range(10):
            fill = "x" * (2000 if number % 3 == 0 else 0)
            event = json.dumps({"push": number, "fill": fill})
            ended = home.run("push", stdin=event)
            assert ended.code in (0, UNKNOWN), ended.err
            (done if ended.code == 0 else unknown).append(number)
        script = home.script(STEP)
        ended = home.run("run", "--max-steps", 8, "--", "python3", script)
        assert ended.code in (0, UNKNOWN), ended.err
        assert faults.count > 40
    assert sum(faults.done.values()) > 0, faults.done

    calm = user(quick, "calm", PUGMARK_BUCKET=url)
    events = reading.events(calm, session)
    pushed = [event["push"] for event in events if "push" in event]
    assert len(pushed) == len(set(pushed)), pushed
    assert set(done) <= set(pushed) <= set(done) | set(unknown)
    replies = [event["reply"] for event in events if "reply" in event]
    assert replies == list(range(len(replies)))
    if ended.code == 0:
        assert len(replies) == 8
    reading.verified(calm)


def test_a_transfer_that_is_cut_again_and_again(user, quick):
    """A large body arrives whole, from whole answers that break off in the middle."""
    url = quick.bucket()
    body = os.urandom(3_000_000)
    calm = user(quick, PUGMARK_BUCKET=url)
    calm.start()
    path = calm.path / "body"
    path.write_bytes(body)
    calm.ok("push", path)
    digest = calm.ok("objects").split("sha256:")[1][:64]
    cuts = []

    def cut_twice(request):
        answer = proxies.forward(quick.endpoint, request)
        if "/objects/" in request.path and len(cuts) < 2:
            cuts.append(request)
            raise proxies.Cut(answer)
        return answer

    with proxies.serving(cut_twice) as server:
        home = user(quick, "reader", AWS_ENDPOINT_URL=server.endpoint, PUGMARK_BUCKET=url)
        out = home.path / "out"
        with open(out, "wb") as file:
            assert home.spawn("cat", f"sha256:{digest}", stdout=file).wait(60) == 0
    assert len(cuts) == 2
    assert out.read_bytes() == body


def test_a_listing_that_is_cut(user, quick):
    url = quick.bucket()
    calm = user(quick, PUGMARK_BUCKET=url)
    session = calm.start({"a": 1})
    cuts = []

    def cut_each_once(request):
        answer = proxies.forward(quick.endpoint, request)
        if "list-type" in request.query and request.target not in cuts:
            cuts.append(request.target)
            raise proxies.Cut(answer)
        return answer

    with proxies.serving(cut_each_once) as server:
        home = user(quick, "reader", AWS_ENDPOINT_URL=server.endpoint, PUGMARK_BUCKET=url)
        assert json.loads(home.ok("cat", "-s", session)) == {"a": 1}
        assert session in home.ok("sessions")
    assert len(cuts) > 3
