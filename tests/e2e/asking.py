"""The probes of HTTP in copies of one bucket, each run under other circumstances, asking one server."""

import json
import shutil

from circumstances import LIMITS, copy
from pug import DONE, Home, guest
from http_servers import Server

# What is asked for: the probe, and paths for `url` and `then`.
PROBES = {
    "clock-and-chance": ("entropy", "/echo", None),
    "two-at-a-time": ("concurrent", "/slow/0.3", "/a"),
    "pieces": ("pieces", "/big/150000", None),
    "timers": ("timers", "/slow/0.3", None),
    "secret": ("get", "/echo", None),
}


class Steady(Server):
    """Answers the same to the same."""

    def answer(self, request, body):
        self.requests.clear()
        super().answer(request, body)


def make(home, server):
    for name, (probe, path, then) in PROBES.items():
        event = {"probe": probe, "url": server.url(path), "then": then and server.url(then)}
        home.ok("link", name, "-s", home.start(event, flags=["--handler", "agent"]))


def observe(home, server, flags=()):
    """Runs every probe once; returns what each appended."""
    seen = {}
    allowed = ["--allow-http", server.place]
    for name in PROBES:
        secret = ["--secret", f"{server.place}=KEY"] if name == "secret" else []
        home.ok("run", "--once", "-s", name, *allowed, *secret, *flags, "--", guest("http-probe"))
        session = json.loads((home.bucket.path / "refs" / name).read_text())["session"]
        seen[name] = [home.bucket.body(entry) for entry in home.bucket.log(session)[1:]]
    return seen


def observe_all(folder):
    """What each probe saw under each of several circumstances; and the reports of its replays, for
    which nobody answers any more."""
    server = Steady()
    env = {"KEY": "sk-0123456789abcdef"}
    base = Home(folder("asking-base"))
    make(base, server)
    homes = {
        "cold": Home(folder("asking-cold"), **env),
        "elsewhere": Home(folder("asking elsewhere"), "Pacific/Kiritimati", LANG="de_DE.UTF-8", **env),
        "limits": Home(folder("asking-limits"), "America/St_Johns", **env),
        "warm": Home(folder("asking-warm"), **env),
    }
    for home in homes.values():
        copy(base, home)
    seen = {"cold": observe(homes["cold"], server), "elsewhere": observe(homes["elsewhere"], server)}
    seen["limits"] = observe(homes["limits"], server, LIMITS)
    shutil.copytree(homes["cold"].path / ".cache", homes["warm"].path / ".cache")
    seen["warm"] = observe(homes["warm"], server)
    fresh = Home(folder("asking-fresh"), **env)
    make(fresh, server)
    seen["fresh"] = observe(fresh, server)
    server.stop()

    bundle = folder("asking-bundle") / "all.pug"
    homes["cold"].ok("bundle", "-o", bundle, *PROBES)
    replayer = Home(folder("asking-replay"), "Asia/Kathmandu")
    reports = []
    for flags in [[], ["--cold", "--jobs", "4"], ["--interpreted", "--jobs", "1"]]:
        result = replayer.run("replay", "--json", *flags, bundle, timeout=120)
        assert result.code == DONE, f"replay {flags}: {result.err}\n{result.out}"
        reports.append([json.loads(line) for line in result.out.splitlines()])
    return seen, reports
