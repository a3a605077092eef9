"""The probes of tests/guests in copies of one bucket, each run under other circumstances."""

import json
import re
import shutil

import wasm
from pug import DONE, PAUSE, Home, guest

BODY = "".join(f"{n} " for n in range(1500))

# Session: the guest, its arguments, and the first event.
TYPED = [
    "hashmap-order",
    "entropy",
    "entries",
    "session",
    "decides",
    "nan",
    "read-whole",
    "read-past-end",
    "read-unknown",
    "read-pieces",
    "memory-leap",
]
COMMAND = [
    "frame",
    "isatty",
    "preopens",
    "random",
    "hashmap-order",
    "denied",
    "denied-raw",
    "clocks",
    "busy-wait",
    "yield",
    "sleep",
    "sleep-long",
    "poll",
    "close-streams",
    "allocate",
    "exit",
]
BY_ARGUMENT = ["stdin-chunks", "stdin-past-end", "stdout-permits", "no-read", "partial-read"]
TEXT = ["floats", "relaxed-simd", "growth", "both-worlds"]
PROBES = {
    **{f"typed.{name}": ("typed-probe", [], name) for name in TYPED},
    **{f"max.{name}": ("typed-probe-max", [], name) for name in ["memory-hog", "memory-leap"]},
    **{
        f"wasip1.{name}": ("typed-probe-wasip1", [], name)
        for name in ["hashmap-order", "entropy", "entries", "nan"]
    },
    **{f"command.{name}": ("command-probe", [], name) for name in COMMAND},
    **{f"argument.{name}": ("command-probe", [name, "two", "three"], name) for name in BY_ARGUMENT},
    "objects": ("command-objects", [], "any"),
    **{f"text.{name}": (None, [], name) for name in TEXT},
}
# What depends on the session or its times: not the same in a fresh one.
OF_THE_SESSION = re.compile(
    r"entropy|session|random|clocks|sleep|poll|yield|frame|^objects|command.hashmap-order"
)

LIMITS = [
    "--timeout",
    "30s",
    "--limit",
    "memory=100MiB",
    "--limit",
    "output=8MiB",
    "--limit",
    "read=3MiB",
    "--limit",
    "handles=5000",
    "--limit",
    "stderr=1KiB",
    "--limit",
    "log-lines=7",
    "--limit",
    "table=9999",
]


def make(home):
    for name, (_, _, probe) in PROBES.items():
        session = home.start(
            {"probe": probe, "piece": 777}, flags=["--meta", "team=core", "--handler", "agent"]
        )
        home.push(BODY, "--name", "long", "--meta", "b=2", "--meta", "a=1")
        home.ok("link", name, "-s", session)


def copy(base, home):
    """The same bucket and context in another home."""
    shutil.copytree(base.path, home.path, dirs_exist_ok=True)
    context = home.path / ".config/pugmark/context.yaml"
    context.write_text(context.read_text().replace(str(base.path), str(home.path)))


def file_of(home, name):
    file, _, probe = PROBES[name]
    if file:
        return guest(file)
    path = home.path / f"{probe}.wasm"
    path.write_bytes(wasm.text(probe))
    return path


def observe(home, flags=()):
    """Runs every probe once; returns what each appended (entry and body), or how it failed."""
    seen = {}
    for name, (_, args, _) in PROBES.items():
        result = home.run("run", "--once", "-s", name, *flags, "--", file_of(home, name), *args)
        session = json.loads((home.bucket.path / "refs" / name).read_text())["session"]
        entries = [(entry, home.bucket.body(entry)) for entry in home.bucket.log(session)[2:]]
        seen[name] = entries if result.code == DONE else result
    return seen


def outputs(seen, probe, circumstances):
    """What the probe appended; fails if it failed."""
    entries = seen[circumstances][probe]
    assert isinstance(entries, list), entries.err
    assert entries and (probe.startswith("text.") or entries[-1][0]["content-type"] == PAUSE)
    return entries


def observe_all(folder):
    """What each probe saw under each of several circumstances; and the home of `cold`."""
    base = Home(folder("base"))
    make(base)
    homes = {
        "cold": Home(folder("cold")),
        "elsewhere": Home(
            folder("elsewhere") / "a b",
            "Pacific/Kiritimati",
            LANG="de_DE.UTF-8",
            FOO="bar",
            TRACEPARENT="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        "limits": Home(folder("limits"), "America/St_Johns"),
        "warm": Home(folder("warm")),
    }
    for home in homes.values():
        copy(base, home)
    # One processor is as many threads as there are least.
    homes["limits"].prefix = ["taskset", "-c", "0"]
    seen = {"cold": observe(homes["cold"]), "elsewhere": observe(homes["elsewhere"])}
    seen["limits"] = observe(homes["limits"], LIMITS)
    shutil.copytree(homes["cold"].path / ".cache", homes["warm"].path / ".cache")
    seen["warm"] = observe(homes["warm"])
    fresh = Home(folder("fresh"))
    make(fresh)
    seen["fresh"] = observe(fresh)
    return seen, homes["cold"]
