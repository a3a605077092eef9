"""Bundles: a session with all it needs in one file, replayed without a bucket, kept in a repository."""

import json
import shutil
import subprocess
import tarfile

import pytest

from pug import BIN, CONFLICT, CORRUPT, DONE, INVALID, NOT_FOUND, ROOT, Home, guest

DIFFERENT, INCOMPLETE = 20, 21
EXAMPLE = ROOT / "examples/pinned-replays"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A session with steps and a fork of it with more; and a bundle of the fork."""
    home = Home(tmp_path_factory.mktemp("made"))
    root = home.start({"kind": "input"}, {"kind": "large", "text": "x" * 5000})
    home.ok("run", "--max-steps", 3, "--", guest("counter"))
    home.ok("fork", home.script('{"kind":"seed"}', "seed.json"))
    home.ok("run", "--max-steps", 40, "--", guest("counter"))
    child = current(home)
    home.ok("bundle", "-o", "run.pug")
    return home, root, child, home.path / "run.pug"


def current(home):
    return json.loads(home.ok("--json", "context"))["session"]


def files(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "bundle.json"
    }


def test_replays_with_an_empty_home_no_bucket_and_no_network(made, tmp_path):
    *_, bundle = made
    user = Home(tmp_path / "empty")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        user.prefix = ["unshare", "-rn"]
    else:
        user.prefix = ["unshare", "-n"]
    result = user.run("--json", "replay", bundle)
    assert result.code == DONE, result.err
    report = json.loads(result.out)
    assert (report["outcome"], report["identical"]) == ("identical", 43)
    assert not (user.path / ".pugmark").exists()
    assert not (user.path / ".config").exists()


def test_the_same_state_gives_the_same_bytes(made, tmp_path):
    home, root, child, bundle = made
    home.ok("bundle", "-o", "again.pug", child)
    assert (home.path / "again.pug").read_bytes() == bundle.read_bytes()
    other = Home(tmp_path / "other", timezone="Asia/Kathmandu")
    (other.path / "bucket").mkdir()
    assert other.ok("-b", "bucket", "unbundle", bundle).split() == [child]
    other.ok("-b", "bucket", "bundle", "-o", "there.pug", child)
    assert (other.path / "there.pug").read_bytes() == bundle.read_bytes()
    other.ok("-b", "bucket", "replay", "-s", child)
    listed = [line.split()[-2] for line in other.ok("-b", "bucket", "sessions").splitlines()]
    assert listed == [child, root]


def test_tar_makes_a_bucket_of_it(made, tmp_path):
    home, _, child, bundle = made
    folder = tmp_path / "bucket"
    folder.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", bundle, "-C", folder], check=True, timeout=60)
    home.ok("-b", folder, "replay", "-s", child)
    home.ok("-b", folder, "bundle", "-o", "untarred.pug", child)
    assert (home.path / "untarred.pug").read_bytes() == bundle.read_bytes()
    unpacked = Home(tmp_path / "user")
    (unpacked.path / "bucket").mkdir()
    unpacked.ok("-b", "bucket", "unbundle", bundle)
    assert files(unpacked.path / "bucket") == files(folder)
    decompressed = subprocess.run(["zstd", "-dc", bundle], capture_output=True, check=True)
    (tmp_path / "run.tar").write_bytes(decompressed.stdout)
    with tarfile.open(tmp_path / "run.tar") as archive:
        members = archive.getmembers()
    assert members[0].name == "bundle.json"
    assert {(m.type, m.mode, m.mtime, m.uid, m.gid, m.uname) for m in members} == {
        (tarfile.REGTYPE, 0o644, 0, 0, 0, "")
    }


def test_a_flipped_byte_anywhere_is_found_and_named(made, tmp_path):
    home, *_, bundle = made
    data = bundle.read_bytes()
    damaged = tmp_path / "damaged.pug"
    for at in [0, 3, 5, 9, len(data) // 3, len(data) // 2, len(data) - 49, len(data) - 1]:
        damaged.write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :])
        for command in (["replay"], ["-b", "memory://", "unbundle"]):
            message = home.fails(CORRUPT, *command, damaged)
            assert "damaged.pug" in message and "` is damaged: " in message, (at, message)


def test_what_is_no_bundle_is_said_to_be_none(home):
    text = home.script("hello")
    assert "it is not a bundle" in home.fails(INVALID, "replay", text)
    assert "it is not a bundle" in home.fails(INVALID, "unbundle", text)
    home.fails(NOT_FOUND, "unbundle", "nowhere.pug")
    home.fails(INVALID, "unbundle", home.path)


def test_a_bundle_may_not_unpack_to_more_than_allowed(made):
    home, *_, bundle = made
    message = home.fails(INVALID, "replay", "--max-unpacked", "20KiB", bundle)
    assert "more than 20480 bytes" in message
    message = home.fails(INVALID, "-b", "memory://", "unbundle", "--max-unpacked", "20KiB", bundle)
    assert "more than 20480 bytes" in message


def test_a_session_that_went_on_otherwise_is_a_conflict(made, tmp_path):
    home, root, _, bundle = made
    user = Home(tmp_path / "user")
    (user.path / "bucket").mkdir()
    user.ok("-b", "bucket", "unbundle", bundle)
    assert "was there already" in user.run("-b", "bucket", "unbundle", bundle).err
    user.ok("-b", "bucket", "push", "-s", root, stdin="other")
    user.ok("-b", "bucket", "unbundle", bundle)
    home.ok("push", "-s", root, stdin="one")
    home.ok("bundle", "-o", "longer.pug", root)
    message = user.fails(CONFLICT, "-b", "bucket", "unbundle", home.path / "longer.pug")
    assert "/snapshots/" in message and "another content" in message


def test_damage_in_the_bucket_is_not_bundled(home):
    home.start({"text": "x" * 2000})
    [body] = (home.bucket.path / "objects").iterdir()
    body.write_bytes(b"y" * 2011)
    assert body.name in home.fails(CORRUPT, "bundle", "-o", "run.pug")
    assert not (home.path / "run.pug").exists()
    body.unlink()
    assert body.name in home.fails(CORRUPT, "bundle", "-o", "run.pug")


def test_pins_hold_until_a_change_is_accepted(home, tmp_path):
    home.start({"kind": "input"})
    home.ok("run", "--max-steps", 3, "--", guest("counter"))
    home.ok("link", "count")
    pins = tmp_path / "pins"
    assert home.ok("pin", pins, "count").startswith("new")
    assert home.ok("pin", pins, "count").startswith("unchanged")
    user = Home(tmp_path / "user")
    user.ok("replay", pins)
    # The session goes on: what is pinned stays, until it is said otherwise.
    before = (pins / "count.pug").read_bytes()
    home.ok("run", "--max-steps", 2, "--", guest("counter"))
    refused = home.run("pin", pins, "count")
    assert (refused.code, refused.out.split()[0]) == (DIFFERENT, "changed")
    assert (pins / "count.pug").read_bytes() == before
    assert home.ok("pin", "--accept", pins, "count").startswith("accepted")
    assert (pins / "count.pug").read_bytes() != before
    user.ok("replay", pins)
    # A bundle that was replaced, one too many, one too few.
    (pins / "count.pug").write_bytes(before)
    shutil.copy(pins / "count.pug", pins / "more.pug")
    changed = user.run("replay", pins)
    assert changed.code == DIFFERENT
    assert "count: its bundle is not the one that was pinned" in changed.out
    assert "more: there is a bundle, but no pin" in changed.out
    home.ok("pin", "--accept", pins)
    user.ok("replay", pins)
    (pins / "more.pug").unlink()
    assert "more: its bundle is missing" in user.run("replay", pins).out
    index = json.loads((pins / "pins.json").read_text())
    assert index["pins"]["count"]["version"] == 4
    home.fails(NOT_FOUND, "replay", tmp_path)


def test_a_changed_handler_differs_from_what_is_pinned(tmp_path):
    user = Home(tmp_path / "user")
    result = user.run("--json", "replay", "--with", guest("wasi-echo"), EXAMPLE / "pins")
    assert result.code == DIFFERENT, result.err
    first = json.loads(result.out.splitlines()[0])
    assert first["first_difference"]["changes"]


def test_the_example_repository_replays_as_it_is(tmp_path):
    """What is committed there was recorded on another day, and must reproduce for good."""
    user = Home(tmp_path / "user")
    result = user.run("--json", "replay", EXAMPLE / "pins")
    assert result.code == DONE, result.out + result.err
    reports = [json.loads(line) for line in result.out.splitlines()]
    assert {report["outcome"] for report in reports} == {"identical"}
    assert sum(report["identical"] for report in reports) > 4
    assert sum(file.stat().st_size for file in (EXAMPLE / "pins").iterdir()) < 400_000


def test_the_examples_ci_script_runs(tmp_path):
    done = subprocess.run(
        ["sh", EXAMPLE / "check.sh"],
        env={"PATH": f"{BIN.parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == DONE, done.stderr
