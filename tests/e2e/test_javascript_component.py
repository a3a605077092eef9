"""A JavaScript handler is the same as a subprocess of Node and as a component, and the same anywhere."""

import http.server
import json
import shutil
import struct
import subprocess
import threading

import pytest

from pug import DONE, FAILED, ROOT, UNUSABLE, Home

TOOLS = ROOT / "target/javascript"
SDK = ROOT / "guest-sdk/javascript"
RECEIPTS = ROOT / "examples/receipts-javascript"
PROBE = ROOT / "tests/e2e/javascript"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A home with a project in it that has the tools and the SDK installed; builds are kept."""
    assert (TOOLS / "done").exists(), "run tests/setup.sh javascript"
    home = Home(tmp_path_factory.mktemp("workshop"))
    modules = home.path / "node_modules"
    modules.mkdir()
    for package in "esbuild", "@esbuild", "@bytecodealliance":
        (modules / package).symlink_to(TOOLS / "node_modules" / package)
    (modules / "pugmark").symlink_to(SDK)
    shutil.copytree(RECEIPTS, home.path / "receipts", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(PROBE, home.path / "probe")
    return home


def build(home, folder, *args):
    made = home.ok("build", "--json", *args, cwd=home.path / folder, timeout=300)
    return home.path / folder / json.loads(made)["path"]


@pytest.fixture(scope="module")
def receipts(workshop):
    return build(workshop, "receipts")


@pytest.fixture(scope="module")
def probe(workshop):
    return build(workshop, "probe", "probe.ts")


@pytest.fixture(scope="module")
def probe_in_node(workshop, probe):
    """The probe without its types, for versions of Node that do not strip them."""
    folder = workshop.path / "probe"
    files = ["probe.ts", "failing.ts"]
    argv = ["node_modules/esbuild/bin/esbuild", *(f"probe/{file}" for file in files)]
    argv += ["--outdir=probe", "--log-level=error"]
    subprocess.run(argv, cwd=workshop.path, env=workshop.env, check=True, timeout=60)
    return folder / "probe.js"


@pytest.fixture
def user(workshop, tmp_path):
    """Another home, which shares compiled code with the workshop."""
    return Home(tmp_path / "user", XDG_CACHE_HOME=str(workshop.path / ".cache"))


def made(home, session):
    """What steps appended: what describes it, and the body."""
    entries = []
    for snapshot in home.bucket.snapshots(session):
        if "step" in snapshot:
            entries += [(described(entry), home.bucket.body(entry)) for entry in snapshot["objects"]]
    return entries


def described(entry):
    return {name: value for name, value in entry.items() if name not in ("data", "from")}


def image(width, height, length):
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return head + bytes(n % 251 for n in range(length - len(head)))


def book_receipts(home, *handler):
    """A session of the example: two receipts and a file that is none; reminders; an approval."""
    session = home.start(flags=["--meta", "remind-after-seconds=0.3", "--handler", "receipts"])
    png = ["--content-type", "image/png"]
    home.push(image(640, 480, 300_000), "--name", "lunch", *png)
    home.push(image(31, 17, 400), "--name", "taxi", *png)
    home.push(b"none" * 1000, "--name", "fake", *png)
    home.push(b"\xff\xfe", "--name", "noise", "--content-type", "application/octet-stream")
    told = home.run("run", "--", *handler)
    assert told.code == DONE, told.err
    home.push({"kind": "approve", "receipt": "lunch", "cents": 1250})
    home.push({"kind": "approve", "receipt": "nothing", "cents": 1})
    home.ok("run", "--", *handler)
    home.bucket.check(session)
    return session, told.err


def test_the_example_gives_the_same_as_subprocess_and_as_component(workshop, receipts, user):
    in_node, told = book_receipts(user, "node", workshop.path / "receipts/handler.js")
    assert "fake is no PNG image" in told
    sandboxed, told = book_receipts(user, receipts)
    assert "fake is no PNG image" in told
    outputs = made(user, in_node)
    assert made(user, sandboxed) == outputs
    kinds = [
        json.loads(body)["kind"] if entry.get("content-type") == "application/json" else entry
        for entry, body in outputs
    ]
    assert kinds.count("seen") == 3 and kinds.count("reminder") == 2
    booking = {"name": "lunch", "content-type": "application/vnd.example.booking"}
    [(_, record)] = [output for output in outputs if booking.items() <= output[0].items()]
    assert record == struct.pack(">QII", 1250, 5, 0)
    assert outputs[-1][1] == b"nobody answers"


def test_the_example_replays(receipts, user):
    book_receipts(user, receipts)
    assert "identical" in user.ok("replay")
    assert "identical" in user.ok("replay", "--cold")


def see(home, probe, *flags):
    """What the probe saw of a session that was copied with its bucket."""
    home.ok("run", "-s", "probe", *flags, "--", probe)
    session = json.loads((home.bucket.path / "refs/probe").read_text())["session"]
    return session, made(home, session)


@pytest.fixture
def copies(workshop, user, tmp_path):
    """Homes whose buckets have one and the same session."""
    session = user.start({"do": "see"}, flags=["--meta", "team=core", "--handler", "agent"])
    user.push({"do": "see"})
    user.ok("link", "probe", "-s", session)
    other = Home(
        tmp_path / "elsewhere",
        timezone="Asia/Kathmandu",
        XDG_CACHE_HOME=str(workshop.path / ".cache"),
        LANG="de_DE.UTF-8",
        LC_ALL="de_DE.UTF-8",
    )
    shutil.copytree(user.bucket.path, other.bucket.path)
    return user, other


LIMITS = ["--limit", "memory=90MiB", "--limit", "output=8MiB", "--timeout", "30s"]


def test_nothing_tells_two_runs_apart(copies, probe):
    user, other = copies
    session, here = see(user, probe)
    assert see(other, probe, *LIMITS) == (session, here)
    [(_, body), _] = here
    seen = json.loads(body)
    created = user.bucket.snapshots(session)[-2]["created"]
    assert seen["built"] == {"now": 946_684_800_000, "zone": 0}
    assert [entry[:2] for entry in seen["folded"]] == [
        [0, 946_684_801_000],
        [1, 946_684_802_000],
    ]
    # The last timer ends 5 ms after decide begins, at the time of the snapshot that it began on.
    start = subprocess.run(["date", "-d", created, "+%s%3N"], capture_output=True, check=True)
    assert int(start.stdout) + 5 <= seen["now"] <= int(start.stdout) + 7
    assert seen["session"] == {
        "id": session,
        "agent": "agent",
        "snapshot": len(user.bucket.snapshots(session)) - 2,
        "metadata": {"team": "core"},
    }
    assert len({seen["folded"][0][2], seen["folded"][1][2], *seen["random"]}) == 5
    assert all(0 <= number < 1 for number in seen["random"][:2])
    assert seen["order"] == ["microtask", "promise", "1 ms", "3 ms", "5 ms"]
    assert seen["local"][0] == "Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)"
    assert (seen["intl"], seen["process"]) == ("undefined", "undefined")


def test_a_random_number_depends_on_its_call_alone(user, probe):
    """A warm instance draws what a fresh one draws."""
    user.start({"do": "see"})
    user.ok("run", "--", probe)
    user.push({"do": "see"})
    user.ok("run", "--", probe)
    user.ok("replay", "--cold")
    assert "identical" in user.ok("replay")


def test_an_error_names_file_and_line(user, probe, probe_in_node):
    user.start({"do": "fail"})
    error = user.fails(FAILED, "run", "--", probe)
    assert "RangeError: told to fail (failing.ts:10:9)" in error
    assert "error:     at decide (probe.ts:" in error
    assert "prelude" not in error and "handler.js" not in error
    error = user.fails(FAILED, "run", "--", "node", probe_in_node)
    assert "RangeError: told to fail" in error


def test_outputs_go_to_forks_and_other_sessions(user, probe, probe_in_node):
    for handler in [probe], ["node", probe_in_node]:
        other = user.start({"do": "nothing"})
        session = user.start({"do": "send", "session": other})
        user.ok("run", "--", *handler)
        [_, greeting] = user.bucket.log(other)
        assert greeting["name"] == "greeting" and user.bucket.body(greeting) == b"hello"
        user.push({"do": "fork"})
        user.ok("run", "--", *handler)
        [child] = [path.name for path in (user.bucket.folder(session) / "children").iterdir()]
        assert user.bucket.events(child)[-1] == {"do": "nothing"}
        user.bucket.check(session)


class Pong(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 5))
        self.end_headers()
        self.wfile.write(b"pong " + body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pong) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_fetch_is_for_those_who_are_let(user, probe, server):
    session = user.start({"do": "fetch", "url": f"http://{server}/x"})
    user.ok("run", "--", probe)
    assert user.bucket.events(session)[-1] == {"denied": True}
    user.push({"do": "fetch", "url": f"http://{server}/x"})
    user.ok("run", "--allow-http", server, "--", probe)
    assert user.bucket.events(session)[-1] == {"status": 200, "text": "pong ping"}
    assert "identical" in user.ok("replay")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('const x = 1;\nimport fs from "node:fs";', "bad.js:2:15"),
        ('import "node:fs";', "`node:fs` is Node's own"),
        ("export default class {", "found end of file"),
        ('const x = 1;\n\nthrow new Error("no");', "bad.js:3:7"),
        ("Math.random();", "Math.random() at the top level of a module"),
    ],
)
def test_what_cannot_be_built_is_explained(workshop, source, message):
    (workshop.path / "bad.js").write_text(source)
    error = workshop.fails(UNUSABLE, "build", "bad.js")
    assert message in error
    assert "error: cannot build `bad.js`: `node` failed" in error
    assert not (workshop.path / "bad.wasm").exists()


def test_what_is_written_down_holds(workshop):
    """The SDK's own tests, the example's, and the types."""
    for folder in SDK, workshop.path / "receipts":
        argv = ["node", "--test"]
        subprocess.run(argv, cwd=folder, env=workshop.env, check=True, timeout=120)
    tsc = [TOOLS / "types/node_modules/.bin/tsc", "-p"]
    checked = subprocess.run(
        [*tsc, workshop.path / "probe"], env=workshop.env, capture_output=True, timeout=120
    )
    assert checked.returncode == 0, checked.stdout.decode()
    wrong = workshop.path / "wrong"
    wrong.mkdir()
    for file in "tsconfig.json", "package.json":
        shutil.copy(PROBE / file, wrong)
    (wrong / "wrong.ts").write_text(
        'import { Output, sleep } from "pugmark";\nsleep({ weeks: 1 }, "x");\nOutput.text(1);\n'
    )
    refused = subprocess.run([*tsc, wrong], env=workshop.env, capture_output=True, timeout=120)
    text = refused.stdout.decode()
    assert "wrong.ts(2,9)" in text and "wrong.ts(3,13)" in text


def test_new_build_run_replay(tmp_path):
    """On an empty home, with the packages that setup has fetched; the same bytes in any folder."""
    cache = {"npm_config_cache": str(TOOLS / "cache"), "npm_config_offline": "true"}
    author = Home(tmp_path / "author", **cache)
    digests = set()
    for place in "one", "another folder":
        (author.path / place).mkdir()
        author.ok("new", "my-agent", "--lang", "javascript", cwd=author.path / place)
        folder = author.path / place / "my-agent"
        made = author.run("build", "--json", cwd=folder, timeout=600)
        assert made.code == DONE, made.err
        assert ("installing componentize-js" in made.err) == (place == "one")
        digests.add(json.loads(made.out)["digest"])
    assert len(digests) == 1
    wasm = (folder / "my-agent.wasm").read_bytes()
    assert str(tmp_path).encode() not in wasm and b"pugmark-build-" not in wasm
    for argv in ["npm", "install", "--silent"], ["npm", "test"]:
        subprocess.run(argv, cwd=folder, env=author.env, check=True, timeout=120)
    hello = {"kind": "input", "text": "hello"}
    for handler in ["node", "handler.js"], ["./my-agent.wasm"]:
        session = author.start(hello)
        author.ok("run", "--", *handler, cwd=folder)
        assert author.bucket.events(session) == [hello, {"kind": "echo", "text": "HELLO"}]
    assert "identical" in author.ok("replay")
