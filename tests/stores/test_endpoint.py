"""Where the store answers: flags, variables, the URL, and what happens when nothing does."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import proxies
import servers
from pug import INVALID, UNAVAILABLE


def without_endpoint(store):
    env = {name: value for name, value in store.env.items() if name != "AWS_ENDPOINT_URL"}
    return servers.Store(store.name, store.scheme, store.endpoint, env, store.create)


def test_the_flag_becomes_part_of_the_context(user, quick):
    home = user(without_endpoint(quick))
    url = quick.bucket("")
    session = home.ok("-b", url, "--endpoint", quick.endpoint, "start").strip()
    # From here on the context says it all.
    home.push({"a": 1})
    assert json.loads(home.ok("cat")) == {"a": 1}
    assert session in home.ok("sessions")
    assert "endpoint=" in home.ok("context")
    # So does the URL, and the variable.
    whole = home.ok("context").split("bucket")[1].split()[0]
    other = user(without_endpoint(quick), "other")
    assert session in other.ok("-b", whole, "sessions")
    assert session in other.ok("-b", url, "sessions", env={"PUGMARK_ENDPOINT": quick.endpoint})


def test_no_encryption_needs_leave(user, quick):
    home = user(quick)
    message = home.fails(INVALID, "-b", "s3://b", "--endpoint", "http://10.255.255.1:9", "start")
    assert "no encryption" in message and "--insecure-endpoint" in message
    for wrong in ("nonsense", "ftp://127.0.0.1"):
        assert "not an endpoint" in home.fails(INVALID, "-b", "s3://b", "--endpoint", wrong, "start")
    assert "cannot say `region`" in home.fails(INVALID, "-b", "s3://b?region=x", "sessions")


def timed(home, *args):
    begun = time.monotonic()
    message = home.fails(UNAVAILABLE, *args)
    return message, time.monotonic() - begun


def test_a_refused_connection(user, quick):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        home = user(quick, AWS_ENDPOINT_URL=endpoint)
        ask = lambda command: timed(home, "-b", "s3://bucket", *command.split())  # noqa: E731
        commands = ("start", "sessions", "cat -s 019abc12-3456-789a-bcde-f0123456789a")
        with ThreadPoolExecutor() as pool:
            for message, seconds in pool.map(ask, commands):
                assert endpoint in message, message
                assert "onnection refused" in message
                assert "hint: nothing answers there" in message
                assert seconds < 40, (message, seconds)


def test_a_server_that_never_answers(user, quick):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        home = user(quick, AWS_ENDPOINT_URL=endpoint)
        ask = lambda command: timed(home, "-b", "s3://bucket", command)  # noqa: E731
        with ThreadPoolExecutor() as pool:
            for message, seconds in pool.map(ask, ("start", "sessions")):
                assert endpoint in message and "no answer within 15 s" in message
                assert seconds < 50, (message, seconds)


def test_a_server_that_is_always_busy(user):
    with proxies.serving(lambda request: proxies.error(503, "SlowDown")) as server:
        home = user(servers.s3_store("busy", server.endpoint))
        for command in (["start"], ["sessions"]):
            message, seconds = timed(home, "-b", "s3://bucket", *command)
            assert "SlowDown" in message and "try again later" in message
            assert seconds < 50, (command, seconds)


def test_a_reader_that_takes_its_time(user, quick):
    """A body is not cut because whoever reads it waits."""
    home = user(quick)
    home.env["PUGMARK_BUCKET"] = quick.bucket()
    home.ok("start")
    path = home.path / "large"
    path.write_bytes(b"0123456789abcdef" * 1_000_000)
    home.ok("push", path)
    digest = home.ok("objects").split("sha256:")[1][:64]
    reader = home.spawn("cat", f"sha256:{digest}", stdout=-1)
    first = reader.stdout.read(1000)
    time.sleep(18)
    rest = reader.stdout.read()
    assert reader.wait(20) == 0
    assert first + rest == path.read_bytes()
