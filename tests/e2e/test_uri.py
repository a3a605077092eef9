"""`uri` outputs: the host fetches what lies in the bucket or under an allowed prefix, and no more."""

import os

import pytest

from pug import FAILED, INVALID, LIMIT, digest, guest


def writes(home, uri, **fields):
    extra = "".join(f", {name}={value!r}" for name, value in fields.items())
    code = f"import pugmark\npugmark.write_remote({uri!r}{extra})\npugmark.pause()\n"
    return ["python", home.script(code)]


@pytest.fixture
def data(home):
    folder = home.path / "data"
    folder.mkdir()
    (folder / "report 1.csv").write_text("a,b\n")
    (home.path / "secret").write_text("secret")
    return folder


def test_a_file_under_an_allowed_folder(home, data):
    session = home.start("x")
    handler = writes(
        home, f"file://{data}/report%201.csv", name="report", content_type="text/csv", metadata={"k": "v"}
    )
    for prefix in (f"file://{data}", f"file://{data}/", f"file://{data}/report%201.csv"):
        home.ok("run", "--once", "--allow-uri", "file:///nowhere", "--allow-uri", prefix, "--", *handler)
        entry = home.bucket.log(session)[-2]
        assert home.bucket.body(entry) == b"a,b\n"
        assert (entry["name"], entry["content-type"], entry["metadata"]) == ("report", "text/csv", {"k": "v"})


def test_a_large_file(home, data):
    session = home.start("x")
    body = os.urandom(1 << 20) * 80
    (data / "large").write_bytes(body)
    home.ok("run", "--once", "--allow-uri", f"file://{data}", "--", *writes(home, f"file://{data}/large"))
    entry = home.bucket.log(session)[1]
    assert (entry["size"], entry["hash"]) == (len(body), digest(body))
    assert home.bucket.body(entry) == body


def test_too_large_a_file(home, data, unchanged):
    home.start("x")
    with open(data / "huge", "wb") as huge:
        huge.truncate(257 << 20)
    unchanged()
    message = home.fails(
        LIMIT, "run", "--allow-uri", f"file://{data}", "--", *writes(home, f"file://{data}/huge")
    )
    assert "past 268435456 bytes" in message


def test_objects_of_the_bucket(home):
    other = home.start("y" * 5000)
    session = home.start("x")
    uri = f"file://{home.bucket.path}/objects/{digest(b'y' * 5000)}"
    home.ok("run", "--once", "--", *writes(home, uri, name="copy"))
    entry = home.bucket.log(session)[1]
    assert home.bucket.body(entry) == b"y" * 5000
    missing = f"file://{home.bucket.path}/objects/{digest(b'z')}"
    assert "there is nothing at" in home.fails(FAILED, "run", "--", *writes(home, missing))
    manifest = home.bucket.folder(other) / "manifest.json"
    message = home.fails(FAILED, "run", "--", *writes(home, f"file://{manifest}"))
    assert "--allow-uri" in message


def test_to_another_session(home, data):
    other = home.start()
    home.start("x")
    handler = writes(home, f"file://{data}/report%201.csv", session=other)
    home.ok("run", "--once", "--allow-uri", f"file://{data}", "--", *handler)
    assert home.bucket.bodies(other) == [b"a,b\n"]


def test_nothing_else_is_fetched(home, data, unchanged):
    (data / "out").symlink_to("../secret")
    (data / "up").symlink_to("..")
    os.mkfifo(data / "pipe")
    home.start("x")
    unchanged()
    base = f"file://{data}"
    refused = {
        "file:///etc/passwd": "neither",
        f"file://{home.path}/secret": "neither",
        f"{base}2/x": "neither",
        "s3://bucket/key": "neither",
        "http://127.0.0.1:1/latest/meta-data": "neither",
        f"{base}/../secret": "`..`",
        f"{base}/%2e%2e/secret": "`..`",
        f"{base}/..%2fsecret": "slash",
        f"{base}//report%201.csv": "empty",
        f"{base}/report 1.csv": "percent-encoded",
        f"{base}/report%201.csv?x": "query",
        "/etc/passwd": "scheme",
        f"{base}/out": "symbolic link",
        f"{base}/up/secret": "symbolic link",
        f"{base}/pipe": "not a regular file",
        f"{base}/missing": "nothing at",
        base: "not a regular file",
    }
    for uri, expected in refused.items():
        message = home.fails(FAILED, "run", "--allow-uri", base, "--", *writes(home, uri))
        assert expected in message, (uri, message)


@pytest.mark.parametrize("prefix", ["data", "/data", "http://h/", "memory://x", "file://h/x", "s3://b/../c"])
def test_prefixes_that_are_none(home, prefix):
    home.start("x")
    assert home.fails(INVALID, "run", "--allow-uri", prefix, "--", "true")


def test_the_sandbox_fetches_nothing(home, data, unchanged):
    home.start({"probe": "raw-stdout", "text": f'{{"uri":"file://{data}/report%201.csv"}}'})
    unchanged()
    message = home.fails(FAILED, "run", "--allow-uri", f"file://{data}", "--", guest("command-probe"))
    assert "sandbox" in message
