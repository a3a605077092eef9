"""A store that ignores conditions is refused before anything is written to it."""

import json

import proxies
import pytest
import s3
import servers
from pug import INVALID, UNAVAILABLE


def test_a_store_that_ignores_conditions_is_refused(user):
    careless = proxies.Careless()
    with proxies.serving(careless) as server:
        home = user(servers.s3_store("careless", server.endpoint))
        for command in (["start"], ["run", "--start", "--", "true"]):
            message = home.fails(UNAVAILABLE, "-b", "s3://bucket/folder", *command)
            assert server.endpoint in message
            assert "If-None-Match" in message and "4 of 4 writers" in message
            assert "docs/object-stores.md" in message
            assert not careless.keys, "nothing is left behind"


def test_a_store_that_honours_them_is_asked_once(user):
    careful = proxies.Careless(honours=True)
    recorder = lambda request: (asked.append(proxies.kind(request)), careful(request))[1]  # noqa: E731
    asked = []
    with proxies.serving(recorder) as server:
        home = user(servers.s3_store("careful", server.endpoint))
        home.ok("-b", "s3://bucket/folder", "start")
        assert asked.count("probe") >= 5
        assert not [key for key in careful.keys if "/probe/" in key]
        asked.clear()
        home.ok("-b", "s3://bucket/other", "start")
        home.push({"x": 1})
        assert "probe" not in asked
        # Another user has no such memory.
        other = user(servers.s3_store("careful", server.endpoint), "other")
        other.ok("-b", "s3://bucket/folder", "start")
        assert asked.count("probe") >= 5


def test_readers_need_no_leave_to_write(user, quick):
    """Nothing is tried out by commands that only read."""
    home = user(quick)
    url = quick.bucket()
    session = home.ok("-b", url, "start").strip()
    recorder = proxies.Recorder(quick.endpoint)
    with proxies.serving(recorder) as server:
        reader = user(quick, "reader", AWS_ENDPOINT_URL=server.endpoint)
        reader.ok("-b", url, "cat", "-s", session)
        reader.ok("-b", url, "sessions")
        assert not [asked for asked in recorder.take() if "GET" not in asked and "HEAD" not in asked]


def test_a_winner_whose_bytes_are_not_there(user):
    """A store that takes the first and keeps the last."""

    class Muddled(proxies.Careless):
        def __call__(self, request):
            if request.creates and request.path in self.keys:
                self.keys[request.path] = request.body
                return proxies.error(412, "PreconditionFailed")
            return super().__call__(request)

    with proxies.serving(Muddled()) as server:
        home = user(servers.s3_store("muddled", server.endpoint))
        message = home.fails(UNAVAILABLE, "-b", "s3://bucket", "start")
        assert "what the winner wrote is not what is stored" in message


def test_a_bucket_that_is_not_there(user, quick):
    home = user(quick)
    message = home.fails(UNAVAILABLE, "-b", "s3://no-such-bucket-at-all/x", "start")
    assert "NoSuchBucket" in message
    assert "check that the bucket exists" in message


def test_wrong_keys(user):
    with proxies.serving(lambda request: proxies.error(403, "SignatureDoesNotMatch")) as server:
        home = user(servers.s3_store("refusing", server.endpoint))
        message = home.fails(UNAVAILABLE, "-b", "s3://bucket", "start")
        assert "SignatureDoesNotMatch" in message and "AWS_PROFILE" in message


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_no_credentials(user, scheme):
    store = servers.Store("none", scheme, "", {}, None)
    env = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
    message = user(store, **env).fails(INVALID, "-b", f"{scheme}://bucket", "start")
    assert "credentials" in message or "account" in message
    assert "hint: set " in message


def test_profiles(user, quick):
    url = quick.bucket()
    store = servers.Store("profile", "s3", quick.endpoint, {"AWS_EC2_METADATA_DISABLED": "true"}, None)
    home = user(store)
    folder = home.path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        f"[work]\naws_access_key_id = {s3.KEY}\naws_secret_access_key = {s3.SECRET}\n"
    )
    (folder / "config").write_text(
        f"[profile work]\nregion = us-east-1\nendpoint_url = {quick.endpoint}\n"
        "[profile corp]\nsso_session = corp\n"
    )
    work = {"AWS_PROFILE": "work"}
    session = home.ok("-b", url, "start", env=work).strip()
    home.ok("push", stdin=json.dumps({"a": 1}), env=work)
    assert json.loads(home.ok("cat", "-s", session, env=work)) == {"a": 1}
    assert "no profile `none`" in home.fails(INVALID, "sessions", env={"AWS_PROFILE": "none"})
    message = home.fails(INVALID, "sessions", env={"AWS_PROFILE": "corp"})
    assert "sso_session" in message and "aws configure export-credentials" in message
