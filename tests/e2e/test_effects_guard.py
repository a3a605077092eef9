"""What a handler may ask, and what it and the log may get to see: hosts, addresses, secrets, limits."""

import base64
import json
import socket
import urllib.parse

import pytest

from pug import DONE, LIMIT, guest
from http_servers import Server, certificate
from test_effects import probe, replayed, run, saw, server, steps  # noqa: F401

SECRET = "sk-very/secret+key=0123456789"
DENIED = "ErrorCode::HttpRequestDenied"


def everything(home):
    """All bytes that are in the bucket."""
    return b"".join(f.read_bytes() for f in sorted(home.bucket.path.rglob("*")) if f.is_file())


def ask(home, url, *flags, probe_name="get", env=None, **arguments):
    """What a request to `url` came to, and what the user was told."""
    session = home.start({"probe": probe_name, "url": url, **arguments})
    result = home.run("run", *flags, "--", guest("http-probe"), env=env)
    assert result.code == DONE, result.err
    return saw(home, session), result.err


def test_without_leave_nothing_is_asked(home, server):
    session = probe(home, server, "get", url=server.url())
    assert home.run("run", "--", guest("http-probe")).code == DONE
    assert saw(home, session) == DENIED
    assert "effects" not in steps(home, session)[0]["step"]
    assert server.requests == []
    assert replayed(home)["identical"] == 1


@pytest.mark.parametrize("allowed, url", [
    ("127.0.0.1:1", "http://127.0.0.1:{port}/"),
    ("localhost:{port}", "http://127.0.0.1:{port}/"),
    ("127.0.0.1", "http://127.0.0.1:{port}/"),
    ("127.0.0.1:{port}", "http://127.0.0.2:{port}/"),
    ("127.0.0.1:{port}", "https://api.example.com/"),
])
def test_only_the_place_that_is_allowed_is_asked(home, server, allowed, url):
    allowed, url = allowed.format(port=server.port), url.format(port=server.port)
    came, told = ask(home, url, "--allow-http", allowed)
    assert came == DENIED and server.requests == []
    place = url.split("/")[2]
    assert f"came to nothing (HTTP-request-denied): `--allow-http {place}` allows it" in told
    assert replayed(home)["identical"] == 1


def test_a_name_for_this_machine_is_no_way_in(home, server):
    """Names that lead to loopback, private and link-local addresses, and literals in disguise."""
    hosts = home.path / "hosts"
    hosts.write_text("127.0.0.1 inside.example\n10.1.2.3 private.example\n169.254.169.254 meta.example\n")
    names = {"inside.example": "loopback", "private.example": "private", "meta.example": "link-local"}
    wrapped = ["unshare", "-rm", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]
    home.prefix = wrapped
    if home.run("--version").code != DONE:
        pytest.skip("no mount namespaces here")
    for name, kind in names.items():
        place = f"{name}:{server.port}"
        came, told = ask(home, f"https://{place}/", "--allow-http", place)
        assert came == DENIED and f"a {kind} address" in told, told
    came, told = ask(home, "https://meta.example/", "--allow-http", "meta.example", "--allow-private-network")
    assert came == DENIED and "link-local" in told
    assert server.requests == []


def test_localhost_is_this_machine(home, server):
    for host in ["localhost", "LOCALHOST"]:
        came, _ = ask(home, f"http://{host}:{server.port}/", "--allow-http", f"localhost:{server.port}")
        assert came["status"] == 200
    assert dict(server.requests[0][2])["host"] == f"localhost:{server.port}"


def test_without_tls_only_this_machine_is_asked(home):
    came, told = ask(home, "http://10.0.0.1/", "--allow-http", "10.0.0.1")
    assert came == DENIED and "without TLS, only this machine is asked" in told


def test_a_redirection_is_a_request_of_its_own(home, server):
    other = Server()
    to = other.url("/stolen").replace("/", "!")
    came, told = ask(home, server.url(f"/to/{to}"), "--allow-http", server.place, probe_name="follow")
    assert came == [302, DENIED] and f"--allow-http {other.place}" in told
    came, _ = ask(home, server.url(f"/to/{to}"), "--allow-http", server.place,
                  "--allow-http", other.place, probe_name="follow")
    assert came[1]["status"] == 200 and other.paths() == ["/stolen"]
    other.stop()


def test_a_proxy_of_the_environment_is_not_asked(home, server):
    proxy = {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    came, _ = ask(home, server.url(), "--allow-http", server.place, env=proxy)
    assert came["status"] == 200


def secret_flags(server, header=None):
    spec = f"{server.place}=KEY" + (f":{header}" if header else "")
    return ["--allow-http", server.place, "--secret", spec]


@pytest.mark.parametrize("header", [None, "x-api-key"])
def test_a_secret_goes_to_its_host_and_nowhere_else(home, server, header):
    other = Server()
    name, value = (header, SECRET) if header else ("authorization", f"Bearer {SECRET}")
    flags = [*secret_flags(server, header), "--allow-http", other.place]
    came, told = ask(home, server.url(), *flags, env={"KEY": SECRET},
                     headers={name: "mine", "accept-encoding": "gzip"})
    assert came["status"] == 200
    sent = {key.lower(): text for key, text in server.requests[0][2]}
    assert sent[name] == value and sent["accept-encoding"] == "identity"
    ask(home, other.url(), *flags, env={"KEY": SECRET})
    assert SECRET not in str(other.requests)
    assert SECRET.encode() not in everything(home) and SECRET not in told
    assert SECRET.encode() not in b"".join(base64.b64decode(e.get("data", "")) for s in home.bucket.path.rglob("*.json")
                                           for e in json.loads(s.read_bytes()).get("objects", []))
    assert replayed(home)["identical"] == 1
    other.stop()


@pytest.mark.parametrize("say", [
    SECRET, urllib.parse.quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode(),
    base64.b64encode(b"Bearer " + SECRET.encode() + b"!").decode(), SECRET.encode().hex(),
    SECRET.replace("/", "\\/"),
])
def test_a_response_that_says_a_secret_is_refused(home, server, say):
    server.says = lambda _: f'{{"you":"{say}"}}'
    came, told = ask(home, server.url("/say/it"), *secret_flags(server), env={"KEY": SECRET})
    assert came == "ErrorCode::InternalError(None)"
    assert "its response has the secret `KEY` in it" in told
    for text in (everything(home).decode("utf-8", "replace"), told):
        assert say not in text and SECRET not in text


def test_an_echo_of_header_fields_is_refused(home, server):
    came, told = ask(home, server.url("/echo"), *secret_flags(server), env={"KEY": SECRET})
    assert came == "ErrorCode::InternalError(None)" and SECRET not in told
    assert SECRET.encode() not in everything(home)


def test_secrets_go_over_tls(home, tmp_path):
    cert, key = certificate(tmp_path)
    server = Server(tls=(cert, key))
    place = f"localhost:{server.port}"
    flags = ["--allow-http", place, "--secret", f"{place}=KEY"]
    env = {"KEY": SECRET, "SSL_CERT_FILE": str(cert)}
    came, told = ask(home, f"https://{place}/", *flags, env=env)
    assert came["status"] == 200, told
    assert dict(server.requests[0][2])["authorization"] == f"Bearer {SECRET}"
    came, told = ask(home, f"https://{place}/", *flags, env={"KEY": SECRET})
    assert came == "ErrorCode::TlsCertificateError" and len(server.requests) == 1
    server.stop()


def test_cookies_and_fields_of_the_connection_are_not_the_handlers(home, server):
    came, _ = ask(home, server.url("/cookie"), "--allow-http", server.place)
    names = [name for name, _ in came["headers"]]
    assert "x-kept" in names and "set-cookie" not in names and "connection" not in names
    assert b"session=1" not in everything(home)


def test_fields_that_a_handler_cannot_set(home, server):
    came, _ = ask(home, server.url(), "--allow-http", server.place, probe_name="headers")
    forbidden, syntax = "HeaderError::Forbidden", "HeaderError::InvalidSyntax"
    assert came[0] == [forbidden] * 9 + [syntax] * 3 + ["ok"] * 2
    assert came[1] == syntax and came[2:5] == [True, 1, "HeaderError::Immutable"]
    sent = [name.lower() for name, _ in server.requests[0][2]]
    assert sent.count("host") == 1


def test_nothing_but_a_host_is_an_authority(home, server):
    came, _ = ask(home, server.url(), "--allow-http", server.place, probe_name="syntax")
    assert came == [
        [True, False, False, False, True, False, False],
        [True, False, True, False, False],
        [True, False, False],
    ]


def test_bodies_that_are_misused(home, server):
    came, _ = ask(home, server.url(), "--allow-http", server.place, probe_name="misuse")
    size = "ErrorCode::HttpRequestBodySize(None)"
    assert came == [True, size, True, True, 'Err("closed")', "ErrorCode::HttpRequestBodySize(Some(4))"]
    assert server.requests == []


def test_poll_finds_answers_at_once(home, server):
    """Of two requests the second is faster: both are ready, in the order of the list."""
    slow, fast = server.url("/slow/0.5"), server.url("/a")
    came, _ = ask(home, slow, "--allow-http", server.place, probe_name="concurrent", then=fast)
    assert came[:3] == [[0, 1], [0, 1], 1000]
    assert server.paths() == ["/slow/0.5", "/a"]
    came, _ = ask(home, server.url("/slow/1.5"), "--allow-http", server.place, probe_name="timers")
    # No time passes for the handler while its request is answered.
    assert came[0] == [1] and came[1] == [1] and came[2] < 1_100_000_000
    assert replayed(home)["identical"] == 1


def test_streams_are_full(home, server):
    came, _ = ask(home, server.url("/big/150000"), "--allow-http", server.place, probe_name="pieces")
    assert came == [0, [65536, 65536, 18928], 150000, True]


def test_a_request_outside_decide_is_denied(home, server):
    came, _ = ask(home, server.url(), "--allow-http", server.place, probe_name="in-fold")
    assert came[0] == DENIED and came[1]["status"] == 200
    assert len(server.requests) == 1
    for flags in [[], ["--cold"]]:
        assert replayed(home, *flags)["identical"] == 1


def test_failures_are_constants_and_recorded(home, server):
    for path, code in [("/drop", "ErrorCode::ConnectionTerminated")]:
        came, _ = ask(home, server.url(path), "--allow-http", server.place)
        assert came == code
        assert replayed(home)["identical"] == 1
    gone = Server()
    gone.stop()
    came, _ = ask(home, gone.url(), "--allow-http", gone.place)
    assert came == "ErrorCode::ConnectionRefused"
    came, _ = ask(home, "https://name.invalid/", "--allow-http", "name.invalid")
    assert came.startswith("ErrorCode::DnsError(")
    assert replayed(home)["identical"] == 1


@pytest.mark.parametrize("name, limit, path, arguments, message", [
    ("get", "http-response=1000", "/big/1001", {}, "over the http-response limit of 1000"),
    ("get", "http-head=8KiB", "/head/20", {}, "over the http-head limit of 8KiB"),
    ("get", "http-request=1000", "/", {"size": 1001}, "over the http-request limit of 1000"),
    ("get", "http-time=300ms", "/slow/5", {}, "has not answered within the http-time limit of 300 ms"),
    ("many", "http-requests=3", "/", {"count": 4}, "over the http-requests limit of 3 a step"),
    ("hold", "http-held=1MiB", "/", {"what": "fields"}, "over the http-held limit of 1MiB"),
    ("hold", "http-held=4MiB", "/", {"what": "bodies"}, "over the http-held limit of 4MiB"),
    ("hold", "http-head=64KiB", "/", {"what": "head"}, "over the http-head limit of 64KiB"),
])
def test_every_limit_ends_the_step_and_names_itself(home, server, name, limit, path, arguments, message):
    home.start({"probe": name, "url": server.url(path), **arguments})
    told = home.fails(LIMIT, "run", "--allow-http", server.place, "--limit", limit, "--", guest("http-probe"))
    assert message in told and "`--limit " in told
    # Nothing is wrong with the next step.
    came, _ = ask(home, server.url(), "--allow-http", server.place)
    assert came["status"] == 200


def test_a_wait_that_cannot_end_is_an_error(home, server):
    home.start({"probe": "wait", "url": server.url()})
    told = home.fails(10, "run", "--allow-http", server.place, "--", guest("http-probe"))
    assert "it waits for the answer to a request whose body it has not finished" in told


def test_no_connection_within_its_time(home):
    # Somebody listens, and says nothing: there is no TLS.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        home.start({"probe": "get", "url": f"https://{place}/"})
        told = home.fails(LIMIT, "run", "--allow-http", place, "--limit", "http-connect=300ms", "--",
                          guest("http-probe"))
    assert "has not been reached within the http-connect limit of 300 ms" in told
