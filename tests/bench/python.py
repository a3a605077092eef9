#!/usr/bin/env python3
"""The same Python handler as a subprocess with the SDK, as an RPC process and as a component, at several
lengths of the log; a typed handler in Rust beside them. Prints a table; asserts nothing.

    target/venv/bin/python tests/bench/python.py [--program target/release/pugmark] [--into docs/python.md]

A step's time is that between two steps that `pugmark run --json` reports: all of it, the log's reading
and the commit with fsync included, but no process's start. The kinds take turns, and the median counts.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HANDLER = ROOT / "tests/bench/python_handler.py"
LENGTHS = (1, 100, 1_000, 10_000)
ROUNDS = 3
MARK = re.compile(r"(<!-- figures: tests/bench/python.py -->\n).*?(<!-- end -->)", re.S)


class Bench:
    def __init__(self, program, folder):
        self.program = program
        self.folder = Path(folder)
        tools = f"{ROOT}/target/venv-componentize/bin:{ROOT}/target/venv/bin"
        self.env = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "PUGMARK_BUCKET": str(self.folder / "bucket"),
        }
        (self.folder / "home").mkdir()
        (self.folder / "bucket").mkdir()

    def run(self, *args, **env):
        done = subprocess.run(
            [self.program, *map(str, args)],
            env=self.env | env,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(f"pugmark {args}: {done.stderr}")
        return done.stdout.strip()

    def session(self, events):
        """A session of so many events."""
        session = self.run("start")
        for first in range(0, events, 1000):
            self.run("push", "-s", session, *self.files(first, min(first + 1000, events)))
        return session

    def files(self, first, end):
        for number in range(first, end):
            path = self.folder / f"event-{number}.json"
            if not path.exists():
                event = {"kind": "input", "text": f"message number {number}", "number": number}
                path.write_text(json.dumps(event))
            yield path.name

    def steps(self, session, count, argv):
        """How long each step took but for the first, in milliseconds."""
        flags = argv.get("flags", [])
        command = ["run", "--json", "-s", session, "--max-steps", count, *flags, "--", *argv["run"]]
        process = subprocess.Popen(
            [self.program, *map(str, command)],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        times = [time.perf_counter() for line in process.stdout if b'"version"' in line]
        process.wait()
        assert len(times) >= count, (session, argv, len(times))
        return [(b - a) * 1000 for a, b in zip(times[: count - 1], times[1:count])]


def table(bench, component):
    python = ROOT / "target/venv/bin/python"
    kinds = {
        "subprocess": {"run": [python, HANDLER], "steps": 4},
        "RPC": {"run": [python, HANDLER, "--rpc"], "flags": ["--rpc"], "steps": 6},
        "component": {"run": [component], "steps": 12},
        "Rust, typed": {"run": [ROOT / "target/guests/out/counter.wasm"], "steps": 12},
    }
    lines = [
        "| events | subprocess | RPC process | component | subprocess / component | typed Rust component |",
        "|---|---|---|---|---|---|",
    ]
    for length in LENGTHS:
        seen = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            for name, kind in kinds.items():
                session = bench.session(length)
                seen[name] += bench.steps(session, kind["steps"], kind)
        took = {name: statistics.median(times) for name, times in seen.items()}
        ratio = took["subprocess"] / took["component"]
        figures = [f"{took[name]:.2f} ms" for name in ("subprocess", "RPC", "component")]
        lines.append(f"| {length:,} | {' | '.join(figures)} | {ratio:.0f} × | {took['Rust, typed']:.2f} ms |")
        print(lines[-1], file=sys.stderr)
    return lines


def once(bench):
    """Builds the component; returns its path, and what is measured once."""
    begun = time.perf_counter()
    bench.run("build", HANDLER, "-o", "handler.wasm", XDG_CACHE_HOME=str(bench.folder / "first"))
    build = time.perf_counter() - begun
    component = bench.folder / "handler.wasm"
    lines = [f"| size of the component | {component.stat().st_size / 1e6:.1f} MB |"]
    lines.append(f"| `pugmark build`, compiling it to machine code included | {build:.1f} s |")
    cold, cached = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory(dir=bench.folder) as cache:
            cold.append(first_step(bench, component, cache))
            cached += [first_step(bench, component, cache) for _ in range(5)]
    lines.append(f"| `pugmark run` of one step, compiling it first | {statistics.median(cold):.1f} s |")
    lines.append(f"| the same, compiled before | {statistics.median(cached) * 1000:.0f} ms |")
    return component, ["| once | |", "|---|---|", *lines]


def first_step(bench, component, cache):
    session = bench.session(1)
    begun = time.perf_counter()
    bench.run("run", "--once", "-s", session, "--", component, XDG_CACHE_HOME=cache)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=ROOT / "target/release/pugmark", type=Path)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    (ROOT / "target/bench").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target/bench") as folder:
        bench = Bench(arguments.program.resolve(), folder)
        component, figures = once(bench)
        text = "\n".join([*table(bench, component), "", *figures]) + "\n"
    print(text)
    if arguments.into:
        page = arguments.into.read_text()
        arguments.into.write_text(MARK.sub(lambda found: found[1] + text + found[2], page))


if __name__ == "__main__":
    main()
