"""Buckets on a read-only and on a full disk: a named error, and nothing half committed."""

import os
import re
import subprocess

import pytest

from pug import DONE, UNAVAILABLE, Bucket, digest, guest

HELLO = '{"kind":"hello"}'


class Disk:
    """A file system of a few KiB in a mount namespace of its own: no root and no clean-up needed."""

    def __init__(self, home, kib):
        self.home, self.path = home, home.path / "disk"
        self.path.mkdir()
        script = (
            f"mount -t tmpfs -o size={kib}k,mode=700 none '{self.path}' && echo ready && read _"
        )
        self.holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        ready = self.holder.stdout.readline()
        assert ready == b"ready\n", self.holder.stderr.read()
        self.enter = [
            "nsenter",
            "--user",
            "--mount",
            "--preserve-credentials",
            "-t",
            str(self.holder.pid),
            "--",
            "env",
            f"--chdir={home.path}",
        ]
        home.prefix = self.enter
        home.env["PUGMARK_BUCKET"] = str(self.path)
        self.bucket = Bucket(f"/proc/{self.holder.pid}/root{self.path}")

    def remount(self, mode):
        subprocess.run([*self.enter, "mount", "-o", f"remount,{mode}", str(self.path)], check=True)

    def free(self):
        stat = os.statvfs(self.bucket.path)
        return stat.f_bavail * stat.f_frsize


@pytest.fixture
def disk(home):
    made = []

    def make(kib):
        made.append(Disk(home, kib))
        return made[-1]

    yield make
    for disk in made:
        disk.holder.communicate(b"\n")


def test_a_read_only_bucket_is_read_and_not_written(home, disk):
    disk = disk(4096)
    session = home.start(HELLO, "x" * 5000)
    disk.remount("ro")
    before = disk.bucket.files()
    assert home.ok("cat").splitlines() == [HELLO, "x" * 5000]
    assert session in home.ok("log", "-A") and session in home.ok("sessions")
    (home.path / "seed").write_text("1")
    writes = [
        ["push"],
        ["start"],
        ["fork", "seed"],
        ["link", "x"],
        ["run", "--once", "--", "echo", '{"data":"MQ=="}'],
        ["run", "--once", "--", guest("counter")],
        ["run", "--start", "--", "true"],
        ["run", "--fork", "--", "true"],
    ]
    for args in writes:
        message = home.fails(UNAVAILABLE, *args, stdin=HELLO)
        assert re.search("read-only", message, re.I), message
    assert disk.bucket.files() == before
    disk.remount("rw")
    home.push(HELLO)
    assert disk.bucket.bodies(session)[2] == HELLO.encode()
    disk.bucket.check(session)


def test_a_full_disk(home, disk):
    disk = disk(600)
    session = home.start(HELLO)
    handler = ["sh", "-c", 'head -c 30000 /dev/urandom | base64 -w0 | sed \'s/.*/{"data":"&"}/\'']
    (home.path / "large").write_bytes(os.urandom(100_000))
    versions = len(disk.bucket.raw(session))
    for args in (
        ["push", "large"],
        ["run", "--once", "--", *handler],
        ["push"],
        ["run", "--once", "--", "echo", '{"data":"MQ=="}'],
    ):
        for _ in range(400):
            result = home.run(*args, stdin=HELLO)
            versions += result.code == DONE
            assert len(disk.bucket.raw(session)) == versions
            if result.code != DONE:
                break
        assert result.code == UNAVAILABLE, result
        assert re.search("no space left", result.err, re.I), result.err
        disk.bucket.check(session)
    for args in (["start"], ["run", "--start", "--", "true"]):
        assert re.search("no space left", home.fails(UNAVAILABLE, *args), re.I)
    log = disk.bucket.log(session)
    objects = sorted((disk.bucket.path / "objects").iterdir())
    named = {entry["hash"] for entry in log} | {
        n for level in disk.bucket.tip(session)["log"]["levels"] for n in level
    }
    assert all(digest(o.read_bytes()) == o.name for o in objects if o.name in named)
    disk.remount("size=4096k")
    home.push(HELLO)
    home.ok("run", "--once", "--", *handler)
    assert disk.bucket.log(session)[: len(log)] == log
    disk.bucket.check(session)


def test_a_full_disk_under_the_home_does_not_lose_the_context(home, disk):
    disk = disk(64)
    home.env |= {"XDG_CONFIG_HOME": str(disk.path / "config")}
    (home.path / "bucket").mkdir()
    home.env["PUGMARK_BUCKET"] = str(home.path / "bucket")
    session = home.start(HELLO)
    context = disk.bucket.path / "config/pugmark/context.yaml"
    before = context.read_bytes()
    filler = disk.bucket.path / "filler"
    with open(filler, "wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"\0" * 512)
    result = home.run("start")
    assert result.code != DONE and "context.yaml" in result.err
    assert context.read_bytes() == before and session.encode() in before
