"""A handler as a process: its environment, its end and all that it started, its endpoint."""

import json
import os
import re
import time

import pytest

from pug import LIMIT, alive, digest, wait_for


def sdk(home, code):
    return ["python", home.script("import pugmark\n" + code)]


def test_environment(home):
    session = home.start([1], flags=["--meta", "team=core", "--handler", "agent"])
    handler = [
        "python",
        "-c",
        """
import json, os, sys
sys.stdin.read()
seen = {k: v for k, v in os.environ.items() if k.startswith(("PUGMARK", "TRACE"))}
import pugmark
pugmark.write({"env": seen, "sdk": [pugmark.session_id(), pugmark.agent(), pugmark.metadata()]})
pugmark.pause()
""",
    ]
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    home.ok(
        "run",
        "--",
        *handler,
        env={"TRACEPARENT": trace, "TRACESTATE": "a=1", "PUGMARK_RPC_URL": "fd://3"},
    )
    told = home.bucket.events(session)[1]
    span = told["env"].pop("TRACEPARENT").split("-")
    assert (span[:2], span[3]) == (trace.split("-")[:2], "01")
    assert re.fullmatch("[0-9a-f]{16}", span[2]) and span[2] != trace.split("-")[2]
    assert told["env"] == {
        "PUGMARK_SESSION_ID": session,
        "PUGMARK_AGENT_ID": "agent",
        "PUGMARK_SESSION_METADATA": '{"team":"core"}',
        "PUGMARK_SNAPSHOT": "1",
        "PUGMARK_STEP_KEY": f"{session}:0",
        "TRACESTATE": "a=1",
    }
    assert told["sdk"] == [session, "agent", {"team": "core"}]


def test_without_a_caller_a_run_is_a_trace(home):
    session = home.start([1])
    handler = ["sh", "-c", 'echo $TRACEPARENT >>told; test $(wc -l <told) = 3 || echo \'{"data":"MQ=="}\'']
    home.ok("run", "--", *handler)
    told = [line.split("-") for line in (home.path / "told").read_text().split()]
    assert len(told) == 3 and all(len(field) == 4 for field in told)
    assert len({trace for _, trace, _, _ in told}) == 1
    assert len({span for _, _, span, _ in told}) == 3
    assert len(home.bucket.bodies(session)) == 3


def test_the_step_key_is_the_same_on_every_retry(home):
    session = home.start([1])
    keys = home.path / "keys"
    handler = [
        "sh",
        "-c",
        f"echo $PUGMARK_STEP_KEY >> {keys}; test $(wc -l < {keys}) -ge 3 && "
        'echo \'{"data":"MQ=="}\'',
    ]
    for attempt in range(2):
        home.fails(10, "run", "--once", "--", *handler)
        home.push([attempt])
    home.ok("run", "--max-steps", "2", "--", *handler)
    assert keys.read_text().split() == [f"{session}:0"] * 3 + [f"{session}:4"]


def test_without_the_sdk(home):
    """`data` is in the line, `url` gives the same body."""
    session = home.start()
    home.push("short")
    home.push("long" * 1000)
    handler = home.script(r"""
import base64, json, sys, urllib.request
for line in sys.stdin:
    entry = json.loads(line)
    with urllib.request.urlopen(entry["url"]) as answer:
        body = answer.read()
        assert int(answer.headers["Content-Length"]) == entry["size"] == len(body)
        assert answer.headers["Content-Type"] == entry["content-type"]
    assert ("data" in entry) == (entry["size"] < 1024)
    assert base64.b64decode(entry.get("data", "")) in (body, b"")
    with urllib.request.urlopen(urllib.request.Request(entry["url"], headers={"Range": "bytes=1-3"})) as part:
        assert (part.status, part.read()) == (206, body[1:4])
    print(json.dumps({"data": base64.b64encode(entry["hash"].encode()).decode()}))
""")
    home.ok("run", "--once", "--", "python", handler)
    hashes = [digest(b"short"), digest(b"long" * 1000)]
    assert home.bucket.bodies(session)[2:] == [hash.encode() for hash in hashes]


@pytest.mark.parametrize("stubborn", [False, True], ids=["willing", "ignores SIGTERM"])
def test_a_timeout_ends_the_whole_process_group(home, unchanged, stubborn):
    home.start([1])
    unchanged()
    trap = "trap '' TERM; " if stubborn else ""
    handler = [
        "sh",
        "-c",
        f"{trap}(sh -c 'sleep 300 & echo $! >> pids; wait') & echo $! $$ >> pids; wait; wait",
    ]
    begun = time.monotonic()
    message = home.fails(LIMIT, "run", "--timeout", "500ms", "--", *handler)
    assert time.monotonic() - begun < 6
    assert "500ms" in message and "--timeout" in message
    pids = [int(pid) for pid in (home.path / "pids").read_text().split()]
    assert len(pids) == 3
    wait_for(lambda: not any(map(alive, pids)), 2)


def test_what_a_good_handler_leaves_running_does_not_hold_the_step(home):
    session = home.start([1])
    handler = ["sh", "-c", 'sleep 20 2>/dev/null & echo $! > pid; echo \'{"data":"MQ=="}\'']
    begun = time.monotonic()
    home.ok("run", "--once", "--", *handler)
    assert time.monotonic() - begun < 5
    assert home.bucket.bodies(session) == [b"[1]", b"1"]
    pid = int((home.path / "pid").read_text())
    assert alive(pid)
    os.kill(pid, 9)


def test_secrets_of_argv_and_environment_are_not_stored(home):
    session = home.start([1], flags=["--handler", "agent"])
    handler = ["sh", "-c", 'cat >/dev/null; echo \'{"data":"MQ=="}\'', "s3cr3t-in-argv"]
    home.ok("run", "--once", "--", *handler, env={"API_KEY": "s3cr3t-in-env"})
    home.ok("run", "--once", "--handler", "agent=sh -c 'cat >/dev/null' s3cr3t-in-route")
    assert len(home.bucket.raw(session)) == 4
    for file in home.path.rglob("*"):
        if file.is_file():
            assert b"s3cr3t" not in file.read_bytes(), file


def test_proxies_are_not_used_for_the_endpoint(home):
    session = home.start("x" * 5000)
    handler = sdk(home, "pugmark.write(sum(len(o.body()) for o in pugmark.read()))\n")
    proxy = "http://127.0.0.1:9"
    home.ok(
        "run",
        "--once",
        "--",
        *handler,
        env={"http_proxy": proxy, "HTTP_PROXY": proxy, "all_proxy": proxy},
    )
    assert home.bucket.bodies(session)[-1] == b"5000"


def test_the_endpoint_serves_this_sessions_objects_only(home):
    other = home.start("y" * 5000)
    session = home.start("x" * 5000)
    handler = home.script(f"""
import json, sys, urllib.error, urllib.request
url = json.loads(sys.stdin.readline())["url"]
def status(url, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).status
    except urllib.error.HTTPError as error:
        return error.code
base, name = url.rsplit("/", 1)
server = "/".join(url.split("/")[:3])
print(json.dumps({{"data": __import__("base64").b64encode(json.dumps([
    status(url), status(base + "/{digest(b"y" * 5000)}"), status(server + "/wrong/" + name),
    status(server + "/"), status(base + "/../../etc/passwd"), status(url, Host="evil.example"),
]).encode()).decode()}}))
""")
    home.ok("run", "--once", "--", "python", handler)
    told = json.loads(home.bucket.bodies(session)[-1])
    assert told[0] == 200
    assert all(code in (400, 403, 404, 421) for code in told[1:]), told
    assert home.bucket.bodies(other) == [b"y" * 5000]
