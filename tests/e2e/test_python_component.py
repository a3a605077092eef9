"""A Python script, unchanged, as a subprocess with the SDK from PyPI and as a component.

What both append is compared byte for byte. The components are built once and kept in target/.
"""

import base64
import gzip
import importlib.metadata
import json
import re
import sys
import textwrap
import zipfile

import pytest
import zstandard

from pug import DONE, FAILED, PAUSE, ROOT, UNUSABLE
from python_components import built, python_home

PYTHON = sys.executable

# The first time, each component takes half a minute to build and compile.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def author(tmp_path):
    return python_home(tmp_path / "author")


@pytest.fixture
def folder(author):
    folder = author.path / "agent"
    folder.mkdir()
    return folder


def outputs(home, session):
    """Every entry as it is stored, without the bodies of `wake`, which tell the time."""
    seen = []
    for entry in home.bucket.log(session):
        body = home.bucket.body(entry)
        if entry.get("event") == "wake":
            seen.append("wake")
        else:
            fields = {k: v for k, v in entry.items() if k not in ("data",)}
            seen.append((fields, body))
    return seen


# The SDK's README.


def examples():
    """The README's pieces of Python, in order."""
    text = importlib.metadata.metadata("pugmark").get_payload()
    return [textwrap.dedent(code) for code in re.findall(r"```python\n(.*?)```", text, re.S)]


# What the pieces take from their surroundings.
PRELUDE = '''
import sys
import pugmark

state = []

def fold(state, event):
    state.append(event)
    pugmark.write({"folded": event})

class Seen(Exception):
    pass

'''


@pytest.fixture
def readme(folder):
    pieces = examples()
    assert len(pieces) >= 7
    text = PRELUDE
    for number, piece in enumerate(pieces):
        body = piece.replace("...    #", "pugmark.write(str(event))    #")
        text += f"def example_{number}():\n    global state\n{textwrap.indent(body, '    ')}\n"
        for name in ("text", "reply", "blob", "cfg"):
            if re.search(rf"^ *{name} *= ", piece, re.M):
                seen = f"{name} if isinstance({name}, (dict, str)) else repr({name})"
                text += f"    pugmark.write({{'{name}': {seen}}})\n"
        text += "\n"
    text += "globals()['example_' + sys.argv[1]]()\npugmark.pause('end')\n"
    (folder / "readme.py").write_text(text)
    return len(pieces)


LOG = [
    ({"kind": "start", "n": 1}, []),
    ({"kind": "input", "text": "früh"}, ["--name", "config"]),
    ({"hello": "world"}, ["--name", "result", "--meta", "a=b"]),
    ('"a text"', ["--name", "greeting", "--content-type", "application/json"]),
    ('[1, 2]', ["--name", "bin", "--content-type", "application/json"]),
    ({"kind": "input", "text": "last"}, []),
]


def test_every_example_of_the_readme_appends_the_same(author, folder, readme):
    component = built(author, folder, "readme.py")
    for number in range(readme):
        seen = []
        for argv in ([PYTHON, "readme.py"], [component]):
            session = author.start(flags=["--handler", "readme"])
            for event, flags in LOG:
                author.push(event, *flags)
            author.ok("run", "--once", "--", *argv, number, cwd=folder)
            assert len(author.bucket.log(session)) > len(LOG), number
            seen.append(outputs(author, session))
        assert seen[0] == seen[1], number


# A whole agent.


MARKDOWN = """# Logs on object stores

Object stores keep immutable objects, and a log is a list of immutable events. Locks are not needed:
put-if-absent has one winner. *Latency* is a matter of the network. Why would logs need more?
"""
NOTES = "Each object of a log is written once. Stores list keys in order. Suits do not matter here."
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0" + bytes(range(256)) * 40


def research(home, session, argv, cwd):
    """Has the agent work to its end, with what a person would push meanwhile."""
    def run():
        home.ok("run", "-s", session, "--", *argv, cwd=cwd)

    home.push({"kind": "task", "question": "Why do object stores suit logs?"})
    home.push(MARKDOWN, "--name", "paper.md", "--content-type", "text/markdown")
    run()
    home.push(PNG, "--name", "diagram.png", "--content-type", "image/png")
    home.push(NOTES, "--name", "notes.txt", "--content-type", "text/plain")
    run()
    home.push({"kind": "review", "approve": False, "remark": "Two quotes a source, please."})
    run()
    home.push({"kind": "review", "approve": True})
    run()


def test_an_agent_does_the_same_work(author):
    folder = ROOT / "examples/research-agent-python"
    assert len((folder / "agent.py").read_text().splitlines()) >= 200
    component = built(author, folder, "agent.py")
    seen = {}
    for argv in (PYTHON, folder / "agent.py"), (component,):
        session = author.start()
        research(author, session, argv, author.path)
        seen[argv] = outputs(author, session)
    first, second = seen.values()
    assert first == second
    names = [entry[0].get("name") for entry in first if entry != "wake"]
    for name in ("plan", "notes/paper.md", "notes/diagram.png", "notes/notes.txt", "index.bin"):
        assert names.count(name) == 1
    assert names.count("brief.md") == 2 and "wake" in first
    assert first[-2][1].startswith(b"approved after 2 briefs: ")
    assert (first[-1][0]["content-type"], first[-1][1]) == (PAUSE, b"done")
    assert "identical" in author.ok("replay")


# What a script can see and do.


PROBE = '''
import atexit, datetime, gzip, importlib.resources, os, random, secrets, sys, time, uuid
import pugmark
import helper
import greeting
from kit import words
from kit.late import LATE

what = sys.argv[1]

def fail():
    helper.fail()

def entropy():
    return {
        "random": random.random(),
        "choices": random.choices("abcdef", k=5),
        "uuid": str(uuid.uuid4()),
        "secrets": secrets.token_hex(8),
        "urandom": os.urandom(4).hex(),
        "set": list({"a", "b", "c", "d", "e"}),
        "hash": hash("a"),
        "time": time.time(),
        "now": datetime.datetime.now().isoformat(),
        "strptime": str(datetime.datetime.strptime("2026-01-02", "%Y-%m-%d")),
        "monotonic": time.monotonic(),
        "id": id(what),
    }

def asleep():
    began = time.time()
    time.sleep(3600)
    return round(time.time() - began)

if what == "entropy":
    list(pugmark.read())
    pugmark.write(entropy())
elif what == "frame":
    pugmark.write({
        "argv": sys.argv, "file": __file__, "name": __name__, "main": sys.modules["__main__"].__name__,
        "id": pugmark.session_id(), "agent": pugmark.agent(), "metadata": pugmark.metadata(),
        "environment": sorted(os.environ), "helper": helper.__file__,
    })
elif what == "bodies":
    for obj in list(pugmark.state()):
        body = obj.body()
        pugmark.write({"name": obj.name(), "size": len(body), "sum": sum(body)})
elif what == "packages":
    import late_one
    pugmark.write([words.prompt(), greeting.hello("Ada"), LATE, late_one.WHEN, helper.SEEN])
elif what == "sleep":
    pugmark.write(asleep())
elif what == "asyncio":
    import asyncio
    async def one(n):
        await asyncio.sleep(60 - n)
        return n
    async def both():
        return await asyncio.gather(one(1), one(2), asyncio.wait_for(one(3), 100))
    pugmark.write(asyncio.run(both()))
elif what == "open":
    try:
        open("/etc/passwd")
    except OSError as error:
        pugmark.write(repr(error))
elif what == "missing":
    try:
        import nowhere
    except ModuleNotFoundError as error:
        pugmark.write(str(error))
elif what == "serve":
    from pugmark.http import WSGIPugmark, serve
    def handler(session):
        session.write({"seen": len(list(session.state())), "agent": session.agent()})
    serve(WSGIPugmark(handler))
elif what == "print":
    print("to standard error")
    atexit.register(lambda: pugmark.write("at exit"))
elif what == "fail":
    pugmark.write("never committed")
    fail()
elif what == "exit":
    pugmark.write("exit")
    sys.exit(int(sys.argv[2]))
elif what == "say":
    sys.exit("cannot go on")
elif what == "interrupt":
    raise KeyboardInterrupt
pugmark.pause("end")
'''

FILES = {
    "helper.py": '''
import pugmark

SEEN = [obj.name() for obj in pugmark.read()]

def fail():
    raise ValueError("on purpose")
''',
    "late_one.py": 'WHEN = "in a function\'s branch"\n',
    "kit/__init__.py": "",
    "kit/words.py": '''
import importlib.resources

def prompt():
    return importlib.resources.files("kit").joinpath("prompts/system.txt").read_text()
''',
    "kit/late.py": "from . import words\nLATE = words.__name__\n",
    "kit/prompts/system.txt": "Be brief.",
}


WHEEL = {
    "greeting/__init__.py": """
from .words import HELLO

def hello(name):
    import greeting.more
    return HELLO.format(name) + greeting.more.MARK
""",
    "greeting/words.py": 'HELLO = "Hello, {}"\n',
    "greeting/more.py": 'MARK = "!"\n',
    "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
    "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "greeting-1.0.dist-info/RECORD": "",
}


def wheel(path):
    """A package of pure Python, as a file that pip installs; the same bytes each time."""
    with zipfile.ZipFile(path, "w") as file:
        for name, text in WHEEL.items():
            file.writestr(zipfile.ZipInfo(name), text)


@pytest.fixture
def probe(author, folder):
    (folder / "probe.py").write_text(PROBE)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)
    (folder / "requirements.txt").write_text("./greeting-1.0-py3-none-any.whl\n")
    wheel(folder / "greeting-1.0-py3-none-any.whl")
    return built(author, folder, "probe.py", "--requirements", "requirements.txt")


def step(home, component, *args, events=({},), flags=()):
    """One step on a fresh session; returns what it wrote, as JSON or text, without the pause."""
    session = home.start(*events, flags=flags)
    home.ok("run", "--once", "--", component, *args)
    entries = home.bucket.log(session)[len(events) :]
    assert entries[-1]["content-type"] == PAUSE
    return [
        json.loads(body) if entry["content-type"] == "application/json" else body.decode()
        for entry, body in ((entry, home.bucket.body(entry)) for entry in entries[:-1])
    ]


def test_what_a_script_sees_is_a_function_of_the_record(author, probe):
    [first] = step(author, probe, "entropy")
    [second] = step(author, probe, "entropy")
    for name in ("random", "choices", "uuid", "secrets", "urandom", "time", "now"):
        assert first[name] != second[name], name
    for name in ("set", "hash", "strptime", "monotonic", "id"):
        assert first[name] == second[name], name
    assert "1 step replayed, identical" in author.ok("replay")
    [frame] = step(author, probe, "frame", "x", flags=["--meta", "a=b"])
    assert frame["argv"] == ["probe.py", "frame", "x"]
    assert (frame["file"], frame["name"], frame["main"]) == ("probe.py", "__main__", "__main__")
    assert (frame["agent"], frame["metadata"]) == ("probe", {"a": "b"})
    assert frame["helper"] == "helper.py"
    names = ["AGENT_ID", "SESSION_ID", "SESSION_METADATA", "SNAPSHOT"]
    assert frame["environment"] == [f"PUGMARK_{name}" for name in names]


def test_what_it_imports_is_in_the_component(author, probe):
    [seen] = step(author, probe, "packages", events=({},))
    assert seen == ["Be brief.", "Hello, Ada!", "kit.words", "in a function's branch", [""]]
    assert step(author, probe, "missing") == ["No module named 'nowhere'"]
    [refused] = step(author, probe, "open")
    assert refused.startswith("FileNotFoundError")


def test_time_passes_without_being_waited_for(author, probe):
    assert step(author, probe, "sleep") == [3600]
    assert step(author, probe, "asyncio") == [[1, 2, 3]]


# Writes each file that it is given, the encoding in its name.
WRITER = """
import base64, json, os, sys
for path in sys.argv[1:]:
    name, encoding = os.path.basename(path).split(".")
    data = base64.b64encode(open(path, "rb").read()).decode()
    print(json.dumps({"data": data, "name": name, "content-encoding": encoding.replace("none", "")}))
"""


def test_bodies_of_any_size_and_encoding(author, probe):
    session = author.start()
    large = bytes(range(256)) * 12_000
    text = b"abc" * 999
    bodies = {
        "plain.none": (text, text),
        "gzip.gzip": (gzip.compress(text), text),
        "zstd.zstd": (zstandard.compress(text), text),
        "large.none": (large, large),
        "empty.none": (b"", b""),
    }
    for name, (stored, _) in bodies.items():
        (author.path / name).write_bytes(stored)
    author.ok("run", "--once", "--", PYTHON, author.script(WRITER), *bodies)
    author.ok("run", "--once", "--", probe, "bodies")
    *said, pause = author.bucket.bodies(session)[len(bodies) :]
    assert pause == b"end"
    assert [json.loads(body) for body in said] == [
        {"name": name.split(".")[0], "size": len(body), "sum": sum(body)}
        for name, (_, body) in bodies.items()
    ]


def test_a_handler_for_rpc_mode_makes_one_step(author, probe):
    assert step(author, probe, "serve") == [{"seen": 1, "agent": "probe"}]


def test_print_goes_to_diagnostics_and_exits_are_heard(author, probe):
    session = author.start({})
    result = author.run("run", "--once", "--", probe, "print")
    assert result.code == DONE and "to standard error" in result.err
    assert author.bucket.bodies(session)[1:] == [b"end", b"at exit"]


def test_how_a_script_ends(author, probe):
    session = author.start({})
    for args, code in ((["exit", 0], DONE), (["exit", 1], FAILED), (["exit", 7], FAILED)):
        assert author.run("run", "--once", "--", probe, *args).code == code
    assert [b for b in author.bucket.bodies(session)[1:]] == [b"exit"]
    error = author.fails(FAILED, "run", "--once", "--", probe, "fail")
    lines = [line.removeprefix("info: ") for line in error.splitlines()]
    number = 1 + PROBE.splitlines().index("    helper.fail()")
    assert "Traceback (most recent call last):" in lines
    assert f'  File "probe.py", line {number}, in fail' in lines
    assert "    helper.fail()" in lines
    assert '  File "helper.py", line 7, in fail' in lines
    assert "ValueError: on purpose" in lines
    assert "pugmark_component" not in error and "/tmp" not in error
    assert "cannot go on" in author.fails(FAILED, "run", "--once", "--", probe, "say")
    author.fails(FAILED, "run", "--once", "--", probe, "interrupt")


# What cannot be built.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import pugmark\ndef f(:\n", ["bad.py, line 2: invalid syntax"]),
        ("import json\nimport nowhere\n", ["bad.py, line 2", "nowhere", "--requirements"]),
        ("import zstandard\n", ["`zstandard`", "bad.py, line 1", "machine code", ".so"]),
    ],
)
def test_what_cannot_be_in_a_component_is_named(author, folder, text, said):
    (folder / "bad.py").write_text(text)
    flags = ["--venv", str(ROOT / "target/venv")] if "zstandard" in text else []
    error = author.fails(UNUSABLE, "build", "bad.py", *flags, cwd=folder)
    for part in said:
        assert part in error, error
    assert not (folder / "bad.wasm").exists()
