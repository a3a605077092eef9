"""Fixtures: the stores, each started once, and users with a home of their own."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import proxies
import servers
from pug import BIN, Home

# PUGMARK_STORES=ministack,ceph chooses; Ceph is tested where it is installed and chosen.
CHOSEN = os.environ.get("PUGMARK_STORES", "ministack,seaweedfs,azurite,google").split(",")


def pytest_report_header():
    return f"pugmark: {BIN}; stores: {', '.join(CHOSEN)}"


def pytest_configure():
    if not BIN.exists():
        raise pytest.UsageError(f"{BIN} is missing: run `cargo build`, or set PUGMARK_BIN")


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """Starts a store by name, once; all are ended when the tests are done."""
    import contextlib

    running, stack = {}, contextlib.ExitStack()

    def start(name):
        if name not in running:
            folder = tmp_path_factory.mktemp("stores") / name
            if name == "google":
                running[name] = stack.enter_context(google(folder.parent, start))
            else:
                running[name] = stack.enter_context(getattr(servers, name)(folder))
        return running[name]

    with stack:
        yield start


def google(folder, start):
    """Google's client against a translator in front of SeaweedFS."""
    import contextlib
    import json

    @contextlib.contextmanager
    def run():
        below = start("seaweedfs")
        with proxies.serving(proxies.Google(below.endpoint)) as server:
            # With this key the client asks nobody for a token.
            key = folder / "key.json"
            key.write_text(
                json.dumps(
                    {
                        "gcs_base_url": server.endpoint,
                        "disable_oauth": True,
                        "client_email": "",
                        "private_key": "",
                        "private_key_id": "",
                    }
                )
            )
            env = {
                "GOOGLE_SERVICE_ACCOUNT": str(key),
                "GOOGLE_BASE_URL": server.endpoint,
                "NO_GCE_CHECK": "true",
            }
            yield servers.Store("google", "gs", server.endpoint, env, below.create)

    return run()


@pytest.fixture(scope="session", params=CHOSEN)
def store(request, started):
    return started(request.param)


@pytest.fixture(scope="session")
def quick(started):
    """The store that answers fastest, for what is about this side of the wire."""
    return started("ministack")


@pytest.fixture
def user(tmp_path):
    """A user of a store: `user(store)`; further ones by further names."""

    def make(store, name="home", **env):
        home = Home(tmp_path / name, **{**store.env, **env})
        return home

    yield make
    shutil.rmtree(tmp_path, ignore_errors=True)
