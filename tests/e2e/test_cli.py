"""Every command and flag of the command line, with what it prints."""

import json
import subprocess

import pytest

from pug import BIN, DONE, INVALID, NOT_FOUND, Bucket, digest, normalised

HELLO = '{"kind":"user_message","text":"hi"}\n'


def test_first_use_makes_the_context_and_the_default_bucket(home):
    assert normalised(home.ok("context")) == (
        f"bucket    file://{home.path}/.pugmark/buckets/default/\nsession   none\n"
    )
    context = home.path / ".config/pugmark/context.yaml"
    assert context.read_text() == f"bucket: file://{home.path}/.pugmark/buckets/default/\n"
    assert (home.path / ".pugmark/buckets/default").is_dir()


def test_start_makes_a_session_and_switches_to_it(home):
    first, second = home.start(), home.start()
    assert first != second
    context = home.path / ".config/pugmark/context.yaml"
    assert context.read_text().splitlines()[1] == f"session: {second}"
    assert home.ok("context") == (
        f"bucket    file://{home.path}/.pugmark/buckets/default/\n"
        f"session   {second}\nsnapshot  0  0 events, at rest\n"
    )


def test_start_keeps_handler_and_metadata(home):
    session = home.start(flags=["--handler", "triage", "--meta", "team=core", "--meta", "a=b=c"])
    manifest = home.bucket.manifest(session)
    assert (manifest["handler"], manifest["metadata"]) == ("triage", {"team": "core", "a": "b=c"})
    assert normalised(home.ok("log")) == "<id 1>  v0  0 events  at rest  handler triage  *\n"
    assert home.run("start", "--meta", "x").code == INVALID


def test_sessions_newest_first(home):
    assert home.ok("sessions") == ""
    ids = [home.start() for _ in range(3)]
    home.ok("link", "middle", "-s", ids[1])
    lines = home.ok("sessions").splitlines()
    newest_first = sorted(ids, reverse=True)
    assert [line[2:38] for line in lines] == newest_first
    assert [line[0] for line in lines] == ["*" if id == ids[2] else " " for id in newest_first]
    marked = {line[2:38]: line[64:] for line in lines}
    assert marked == {ids[0]: "", ids[1]: "  middle", ids[2]: ""}
    assert normalised(lines[0])[1:] == " <id 1>  <time>" + marked[newest_first[0]]
    assert home.ok("sessions", "-n", "2").splitlines() == lines[:2]


def test_switch_takes_ids_their_beginnings_and_ends_and_names(home):
    first, second = home.start(), home.start()
    assert home.ok("switch", first) == f"{first}\n"
    assert home.ok("context").splitlines()[1] == f"session   {first}"
    assert home.ok("switch", second[-8:]) == f"{second}\n"
    unique = next(first[:n] for n in range(1, 37) if first[:n] != second[:n])
    assert home.ok("switch", unique) == f"{first}\n"
    assert home.ok("switch", unique.replace("-", "").upper()) == f"{first}\n"
    home.ok("link", "code-review")
    home.ok("switch", second)
    assert home.ok("switch", "code-review") == f"{first}\n"


def test_an_ambiguous_id_lists_its_candidates(home):
    first, second = home.start(), home.start()
    shared = next(first[:n] for n in range(35, 0, -1) if first[:n] == second[:n])
    message = home.fails(INVALID, "switch", shared)
    lines = message.splitlines()
    assert lines[0] == f"error: `{shared}` is the beginning or end of 2 session ids"
    assert lines[1] == "hint: give more digits of one of"
    newest_first = sorted([first, second], reverse=True)
    assert [line.split()[0] for line in lines[2:]] == newest_first
    assert home.ok("context").splitlines()[1] == f"session   {second}"


def test_refs(home):
    first = home.start()
    home.ok("link", "code-review")
    second = home.start()
    assert home.ok("link", "a-b.c") == ""
    assert home.ok("refs") == f"a-b.c        {second}\ncode-review  {first}\n"
    home.push(HELLO, "-s", "code-review")
    assert home.bucket.bodies(first) == [HELLO.encode()]
    home.ok("link", "code-review")
    assert home.ok("refs") == f"a-b.c        {second}\ncode-review  {second}\n"
    assert home.ok("unlink", "code-review") == ""
    assert home.ok("refs") == f"a-b.c  {second}\n"
    assert "no session is named `code-review`" in home.fails(NOT_FOUND, "unlink", "code-review")
    assert "cannot name a session" in home.fails(INVALID, "link", "../x")
    assert "cannot name a session" in home.fails(INVALID, "link", "a/b")
    assert home.ok("refs") == f"a-b.c  {second}\n"


def test_push_from_standard_input(home):
    session = home.start()
    assert home.ok("push", stdin=HELLO) == f"{digest(HELLO.encode())}\n"
    [entry] = home.bucket.log(session)
    assert entry["content-type"] == "application/json"
    assert "name" not in entry
    assert home.bucket.body(entry) == HELLO.encode()


def test_push_files_under_their_names_in_one_version(home):
    session = home.start()
    (home.path / "report.json").write_text('{"a":1}')
    (home.path / "data.csv").write_text("a,b\n")
    (home.path / "picture").write_bytes(b"\xff\x00")
    assert normalised(home.ok("push", "report.json", "data.csv", "picture")) == (
        "<hash 1>  report.json\n<hash 2>  data.csv\n<hash 3>  picture\n"
    )
    found = [(e["name"], e["content-type"]) for e in home.bucket.log(session)]
    assert found == [
        ("report.json", "application/json"),
        ("data.csv", "text/csv"),
        ("picture", "application/octet-stream"),
    ]
    assert len(home.bucket.raw(session)) == 2


def test_push_flags(home):
    session, other = home.start(), home.start()
    (home.path / "hello.txt").write_text("hello")
    flags = [
        "--name",
        "greeting",
        "--content-type",
        "text/markdown",
        "--meta",
        "b=2",
        "--meta",
        "a=1",
    ]
    home.ok("push", *flags, "-s", session, "hello.txt")
    [entry] = home.bucket.log(session)
    assert home.bucket.log(other) == []
    assert (entry["name"], entry["content-type"]) == ("greeting", "text/markdown")
    assert list(entry["metadata"].items()) == [("a", "1"), ("b", "2")]
    assert "--name" in home.fails(INVALID, "push", "--name", "x", "hello.txt", "hello.txt")
    assert "missing.txt" in home.fails(NOT_FOUND, "push", "hello.txt", "missing.txt")
    assert len(home.bucket.log(session)) == 1


def test_push_of_a_folder_is_refused(home, unchanged):
    home.start()
    (home.path / "folder").mkdir()
    unchanged()
    assert "folder" in home.fails(INVALID, "push", "folder")


def test_log_draws_the_tree(home):
    root = home.start(HELLO)
    seeds = []
    for name in ["one", "two"]:
        (home.path / f"{name}.json").write_text(json.dumps({"seed": name}))
        seeds.append(f"{name}.json")
    children = home.ok("fork", *seeds).split()
    (home.path / "three.json").write_text("3")
    grandchild = home.ok("fork", "-s", f"{children[0]}:0", "three.json").strip()
    home.ok("fork", "-s", f"{root}:0", "three.json")
    home.ok("link", "best", "-s", children[1])
    home.ok("switch", grandchild)
    drawn = home.ok("log")
    first, second = sorted(children)
    below = {
        children[0]: f"│  └─ {grandchild}  forked at v0  v0  3 events  due  *\n",
        children[1]: "",
    }
    if first != children[0]:
        below[children[0]] = below[children[0]].replace("│", " ")
    named = {children[0]: "", children[1]: "  (best)"}
    last_below = below[second].replace("│", " ")
    early = next(line for line in drawn.splitlines() if "1 event  due" in line and "forked" in line)
    assert drawn == (
        f"{root}  v1  1 event  due\n"
        f"{early}\n"
        f"├─ {first}  forked at v1  v0  2 events  due{named[first]}\n"
        + below[first]
        + f"└─ {second}  forked at v1  v0  2 events  due{named[second]}\n"
        + last_below
    )
    assert early.startswith("├─ ") and early.endswith("  forked at v0  v0  1 event  due")
    assert home.ok("log", "-s", root) == drawn


def test_log_with_snapshots(home):
    session = home.start(HELLO, [1])
    home.ok("run", "--once", "--", "true")
    listed = home.ok("log", "-A")
    assert normalised(listed) == (
        "<id 1>  v3  2 events  at rest  *\n"
        "  v0  <time>  checkpoint\n"
        "  v1  <time>  checkpoint\n"
        "      <hash 1>        36 B  application/json\n"
        "  v2  <time>  provisional\n"
        "      <hash 2>         3 B  application/json\n"
        "  v3  <time>  checkpoint  step by true on v2, nothing to add\n"
    )
    times = [s["created"] for s in home.bucket.snapshots(session)]
    assert [line.split()[1] for line in listed.splitlines() if line.startswith("  v")] == times
    assert normalised(home.ok("log", "-n", "1")) == (
        "<id 1>  v3  2 events  at rest  *\n  … 3 older versions\n"
        "  v3  <time>  checkpoint  step by true on v2, nothing to add\n"
    )


def test_objects(home):
    session = home.start(HELLO)
    home.push("x" * 2000, "--name", "long")
    home.push(b"\xff" * 3 * 2**20)
    assert normalised(home.ok("objects")) == (
        "<hash 1>        36 B  application/json\n"
        "<hash 2>     2.0 KiB  text/plain; charset=utf-8  long\n"
        "<hash 3>     3.0 MiB  application/octet-stream\n"
    )
    lines = home.ok("objects").splitlines(keepends=True)
    assert home.ok("objects", "-n", "1") == lines[2]
    assert home.ok("objects", "-s", f"{session}:1") == lines[0]
    assert home.ok("objects", "-s", f"{session[-6:]}:v2") == "".join(lines[:2])


def test_cat(home):
    session = home.start(HELLO)
    body = bytes(range(256)) * 8192
    home.push(body)
    assert home.ok("cat", digest(HELLO.encode())) == HELLO
    assert home.ok("cat", digest(HELLO.encode())[7:15]) == HELLO
    done = subprocess.run([BIN, "cat", digest(body)], env=home.env, capture_output=True, check=True)
    assert done.stdout == body
    assert home.ok("cat", "-s", f"{session}:1") == HELLO
    home.push("no line break", "-s", session)
    home.start()
    assert home.ok("cat", "-s", f"{session}:3").endswith("no line break\n")
    assert digest(HELLO.encode()) in home.fails(NOT_FOUND, "cat", digest(HELLO.encode()))


def test_stat(home):
    home.start()
    home.push(HELLO, "--name", "a\tb\nc", "--meta", "k=v", "--meta", "a=b")
    assert normalised(home.ok("stat", digest(HELLO.encode())[:20])) == (
        "hash              <hash 1>\n"
        "size              36\n"
        "stored            inline\n"
        "name              a\\tb\\u{a}c\n"
        "content-type      application/json\n"
        "metadata          a=b\n"
        "metadata          k=v\n"
    )
    home.push("x" * 1024)
    assert "stored            object\n" in home.ok("stat", digest(b"x" * 1024))


def test_pull(home):
    session = home.start(HELLO)
    hash, file = digest(HELLO.encode()), home.path / "file.json"
    assert home.ok("pull", hash, "-o", "file.json") == "file.json\n"
    assert file.read_text() == HELLO
    file.write_text("old")
    assert home.ok("pull", hash[7:13], "-o", file) == f"{file}\n"
    assert file.read_text() == HELLO
    home.push("x" * 5000, "--name", "named.txt")
    assert home.ok("pull", digest(b"x" * 5000), "-s", session) == "named.txt\n"
    assert (home.path / "named.txt").read_text() == "x" * 5000
    (home.path / "named.txt").write_text("mine")
    assert "named.txt" in home.run("pull", digest(b"x" * 5000)).err
    assert (home.path / "named.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", "..", ".", ""])
def test_pull_never_leaves_the_folder(home, name):
    home.start()
    home.push(HELLO, "--name", name)
    message = home.fails(INVALID, "pull", digest(HELLO.encode()))
    assert "-o" in message
    assert not list(home.path.parent.glob("evil"))


def test_fork_seeds_a_child_and_switches_to_it(home):
    root = home.start(HELLO, [1], [2])
    (home.path / "turn.json").write_text('{"turn":1}')
    child = home.ok("fork", "turn.json").strip()
    assert home.ok("context").splitlines()[1] == f"session   {child}"
    assert home.bucket.events(child) == [*home.bucket.events(root), {"turn": 1}]
    home.push([3])
    assert home.bucket.events(root) == [json.loads(HELLO), [1], [2]]
    older = home.ok("fork", "-s", f"{root}:1", "turn.json").strip()
    assert home.bucket.events(older) == [json.loads(HELLO), {"turn": 1}]
    assert home.bucket.manifest(older)["parent"]["version"] == 1
    assert home.bucket.log(older)[-1]["name"] == "turn.json"


def test_fork_takes_one_seed_or_more(home):
    root = home.start(HELLO)
    (home.path / "a.json").write_text("1")
    (home.path / "b.json").write_text("2")
    a, b = home.ok("fork", "a.json", "b.json").split()
    assert home.ok("context").splitlines()[1] == f"session   {b}"
    assert [home.bucket.events(s)[1:] for s in (a, b)] == [[1], [2]]
    assert home.run("fork").code == INVALID
    home.fails(NOT_FOUND, "fork", "-s", root, "missing.json")


def test_run_start_fork_once_and_steps(home):
    home.run("run", "--start", "--", "true")
    root = home.ok("context").splitlines()[1].split()[1]
    home.push(HELLO)
    handler = ["python", "-c", "import pugmark; pugmark.write(len(list(pugmark.read())))"]
    result = home.run("run", "--once", "--", *handler)
    assert (result.code, result.out) == (DONE, "")
    assert normalised(result.err).splitlines()[-1] == "1 step, due"
    assert (
        home.run("run", "--max-steps", "3", "--", *handler).err.splitlines()[-1] == "3 steps, due"
    )
    assert home.bucket.events(root) == [json.loads(HELLO), 1, 2, 3, 4]
    home.run("run", "--fork", "--once", "--", *handler)
    child = home.ok("context").splitlines()[1].split()[1]
    assert child != root
    assert home.bucket.events(child) == [json.loads(HELLO), 1, 2, 3, 4, 5]
    assert home.bucket.snapshots(child)[0]["objects"] == []
    home.ok("run", "--fork", "--once", "-s", f"{root}:2", "--", *handler)
    assert home.bucket.events(home.ok("context").splitlines()[1].split()[1]) == [
        json.loads(HELLO),
        1,
    ]
    assert "--fork" in home.fails(INVALID, "run", "--once", "-s", f"{root}:2", "--", *handler)


def test_run_goes_on_until_a_pause(home):
    session = home.start()
    handler = home.script(
        "import pugmark\n"
        "n = len(list(pugmark.read()))\n"
        "pugmark.write({'n': n}) if n < 4 else pugmark.pause('enough')\n"
    )
    result = home.run("run", "--", "python", handler)
    assert (result.code, result.out) == (DONE, "")
    assert result.err.splitlines()[-2:] == ["v5  pause: enough", "5 steps, paused"]
    assert home.bucket.events(session) == [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 3}]


def test_named_handlers_are_routed_by_the_manifest(home):
    one, two = (
        home.script(f"import pugmark\nlist(pugmark.read())\npugmark.write({n})", f"{n}.py")
        for n in (1, 2)
    )
    both = ["--handler", f"one=python '{one}'", "--handler", f"two=python {two}"]
    session = home.start(flags=["--handler", "two"])
    home.ok("run", "--once", *both)
    assert home.bucket.events(session) == [2]
    assert home.bucket.tip(session)["step"]["handler"] == "two"
    home.ok("run", "--start", "--once", *both)
    started = home.ok("context").splitlines()[1].split()[1]
    assert home.bucket.events(started) == [1]
    assert home.bucket.manifest(started)["handler"] == "one"
    home.start(flags=["--handler", "three"])
    message = home.fails(NOT_FOUND, "run", *both)
    assert "`three`" in message and "one, two" in message
    assert home.run("run", *both, "--", "true").code == INVALID
    assert "given twice" in home.fails(INVALID, "run", *both, "--handler", "two=true")
    assert "--handler 'three=COMMAND'" in home.fails(NOT_FOUND, "run")


def test_another_bucket(home, tmp_path):
    mine = home.start(HELLO)
    other = tmp_path / "other bucket"
    message = home.fails(NOT_FOUND, "-b", other, "sessions")
    assert str(other) in message and "mkdir" in message
    other.mkdir()
    assert home.ok("-b", f"file://{tmp_path}/other%20bucket", "sessions") == ""
    assert home.ok("context").splitlines()[1] == f"session   {mine}"
    theirs = home.ok("start", "-b", other).strip()
    assert home.ok("context").splitlines()[:2] == [
        f"bucket    file://{tmp_path}/other%20bucket/",
        f"session   {theirs}",
    ]
    assert Bucket(other).log(theirs) == []
    home.fails(NOT_FOUND, "-b", home.bucket.path, "push", "-s", theirs, stdin=HELLO)
    home.fails(NOT_FOUND, "-b", home.bucket.path, "push", stdin=HELLO)
    assert "current session" in home.fails(NOT_FOUND, "-b", home.bucket.path, "log")
    home.ok("-b", home.bucket.path, "switch", mine)
    assert home.ok("context").splitlines()[1] == f"session   {mine}"
    assert "give a folder" in home.fails(INVALID, "-b", "ftp://x/y", "sessions")


def test_a_bucket_in_memory_is_not_kept_as_the_current_one(home):
    mine = home.start(HELLO)
    home.ok("-b", "memory://", "run", "--start", "--", "true")
    assert home.ok("context").splitlines()[1] == f"session   {mine}"


def test_xdg_and_pugmark_variables(home, tmp_path):
    (tmp_path / "bucket").mkdir()
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "PUGMARK_BUCKET": str(tmp_path / "bucket")}
    session = home.ok("start", env=env).strip()
    assert (tmp_path / "config/pugmark/context.yaml").exists()
    assert Bucket(tmp_path / "bucket").log(session) == []
    assert not (home.path / ".config").exists()
