"""Walks the CLI reference from top to bottom, line by line, and compares what each line prints.

On a local bucket; and on each bucket URL in `PUGMARK_TEST_BUCKETS` (separated by spaces), below a
folder of its own. What a store needs of the environment is passed on.
"""

import os
import re
import uuid

import pytest

from pug import Home, normalised

PASSED_ON = re.compile(r"(AWS|GOOGLE|AZURE|SSL)_\w+|PUGMARK_(?!BUCKET|TEST|BIN|GUESTS|WEBHOOKS)\w+")
REMOTE = os.environ.get("PUGMARK_TEST_BUCKETS", "").split()

AGENT = """\
import pugmark

count = len([event for event in pugmark.read()])
if count < 4:
    pugmark.write({"kind": "reply", "count": count})
else:
    pugmark.pause("enough")
"""

WORKER = """\
cat > /dev/null
echo '{"data":"MQ==","content-type":"application/json"}'
echo '{"data":"","content-type":"application/vnd.pugmark.pause+text"}'
"""


@pytest.fixture(params=["default", *REMOTE])
def walk(request, tmp_path):
    """Runs lines of the reference; compares what they print, ids and hashes numbered."""
    url = None
    if request.param != "default":
        folder, _, query = request.param.partition("?")
        url = f"{folder.rstrip('/')}/reference-{uuid.uuid4().hex[:12]}" + (query and f"?{query}")
    passed_on = {k: v for k, v in os.environ.items() if PASSED_ON.fullmatch(k)}
    return Walk(Home(tmp_path / "home", **passed_on), url)


class Walk:
    def __init__(self, home, url):
        self.home = home
        self.url = url
        self.first = True
        (home.path / "agent.py").write_text(AGENT)
        (home.path / "worker.sh").write_text(WORKER)
        for name, text in {
            "report.json": '{"total":1}',
            "data.csv": "a,b\n",
            "hello.txt": "hello\n",
            "turn.json": '{"kind":"user_message","text":"no"}',
        }.items():
            (home.path / name).write_text(text)

    def __call__(self, *args, prints="", says="", stdin=b""):
        # The context names the bucket from the first session on.
        if self.first and self.url:
            args = ("-b", self.url, *args)
        self.first = False
        result = self.home.run(*args, stdin=stdin)
        assert result.code == 0, f"pugmark {args}: exit {result.code}\n{result.err}"
        err = re.sub(r"\b[0-9a-f]{12}\b(?!-)", "<short>", normalised(result.err))
        assert normalised(result.out) == prints, f"stdout of pugmark {args}"
        assert err == says, f"stderr of pugmark {args}"
        return result.out

    def context(self):
        out = self.home.ok("context")
        return re.search(r"session   (\S+)", out)[1]


def test_the_reference_line_by_line(walk):
    managing_sessions(walk)
    hash = pushing_and_inspecting(walk)
    forking(walk, hash)
    handlers(walk)
    skills(walk)
    health(walk)


def managing_sessions(walk):
    first = walk("start", prints="<id 1>\n").strip()
    second = walk("start", prints="<id 1>\n").strip()
    walk("sessions", prints="* <id 1>  <time>\n  <id 2>  <time>\n")
    walk("switch", first, prints="<id 1>\n")
    assert normalised(walk.home.ok("context")).splitlines()[1:] == [
        "session   <id 1>",
        "snapshot  0  0 events, at rest",
    ]
    walk("link", "code-review")
    walk("refs", prints="code-review  <id 1>\n")
    walk("switch", second, prints="<id 1>\n")
    walk("switch", "code-review", prints="<id 1>\n")
    assert walk.context() == first
    walk("unlink", "code-review")
    walk("refs")


def pushing_and_inspecting(walk):
    hi = '{"kind":"user_message","text":"hi"}\n'
    hash = walk("push", stdin=hi.encode(), prints="<hash 1>\n").strip()
    walk("push", "report.json", "data.csv", prints="<hash 1>  report.json\n<hash 2>  data.csv\n")
    walk("push", "--name", "greeting", "hello.txt", prints="<hash 1>  greeting\n")
    walk("log", prints="<id 1>  v3  4 events  due  *\n")
    walk(
        "log",
        "-A",
        prints="<id 1>  v3  4 events  due  *\n"
        "  v0  <time>  checkpoint\n"
        "  v1  <time>  checkpoint\n"
        "      <hash 1>        36 B  application/json\n"
        "  v2  <time>  provisional\n"
        "      <hash 2>        11 B  application/json  report.json\n"
        "      <hash 3>         4 B  text/csv  data.csv\n"
        "  v3  <time>  provisional\n"
        "      <hash 4>         6 B  text/plain  greeting\n",
    )
    walk(
        "objects",
        prints="<hash 1>        36 B  application/json\n"
        "<hash 2>        11 B  application/json  report.json\n"
        "<hash 3>         4 B  text/csv  data.csv\n"
        "<hash 4>         6 B  text/plain  greeting\n",
    )
    walk("cat", hash, prints=hi)
    walk(
        "stat",
        hash,
        prints="hash              <hash 1>\n"
        "size              36\n"
        "stored            inline\n"
        "content-type      application/json\n",
    )
    walk("pull", hash, "-o", "file.json", prints="file.json\n")
    assert (walk.home.path / "file.json").read_text() == hi
    return hash


def forking(walk, hash):
    root = walk.context()
    child = walk("fork", "turn.json", prints="<id 1>\n").strip()
    assert walk.context() == child
    walk("fork", "-s", f"{root}:1", "turn.json", prints="<id 1>\n")
    walk(
        "run",
        "--fork",
        "--",
        "python",
        "agent.py",
        says="session <id 1>, forked at v0\n"
        "v1  <short>\nv2  <short>\nv3  pause: enough\n3 steps, paused\n",
    )
    grandchild = walk.context()
    walk("push", stdin=b"2", prints="<hash 1>\n")
    drawn = normalised(walk.home.ok("log", "-A"))
    assert drawn.splitlines()[0] == "<id 1>  v3  4 events  due"
    assert [line for line in drawn.splitlines() if "forked" in line] == [
        "├─ <id 2>  forked at v1  v0  2 events  due",
        "│  └─ <id 3>  forked at v0  v4  6 events  due  *",
        "└─ <id 4>  forked at v3  v0  5 events  due",
    ]
    assert grandchild in walk.home.ok("log", "-A")
    walk("cat", "-s", f"{root}:1", hash, prints='{"kind":"user_message","text":"hi"}\n')
    assert walk.home.ok("diff", root, child).splitlines()[-1] == "0 changed, 0 removed, 1 added"


def handlers(walk):
    # An empty log is one line of event `start`, and so is counted as one event.
    from_the_start = "session <id 1>\n" + "".join(f"v{n}  <short>\n" for n in range(1, 5))
    from_the_start += "v5  pause: enough\n5 steps, paused\n"
    walk("run", "--start", "--", "python", "agent.py", says=from_the_start)
    walk("run", "--once", "--", "python", "agent.py", says="v6  pause: enough\n1 step, paused\n")
    walk("run", "--", "python", "agent.py", says="v7  pause: enough\n1 step, paused\n")
    named = ["--handler", "python=python agent.py", "--handler", "bash=bash worker.sh"]
    walk("run", *named, "--start", says=from_the_start)
    walk("start", "--handler", "bash", prints="<id 1>\n")
    walk("run", *named, says="v1  <short>  pause: \n1 step, paused\n")
    assert walk.home.ok("cat") == "1\n\n"


def skills(walk):
    listed = walk.home.ok("skills")
    assert "using-the-pugmark-cli\n" in listed
    assert "# Using the pugmark CLI" in walk.home.ok("skills", "using-the-pugmark-cli")


def health(walk):
    walk("verify", says="everything is as it was written\n")
    assert "nothing to delete" in walk.home.run("gc").err
