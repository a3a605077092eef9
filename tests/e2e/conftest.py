"""Fixtures: a hermetic home for each test."""

import pytest

from circumstances import observe_all
from pug import BIN, Home


def pytest_report_header():
    return f"pugmark: {BIN}"


def pytest_configure():
    if not BIN.exists():
        raise pytest.UsageError(f"{BIN} is missing: run `cargo build`, or set PUGMARK_BIN")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def unchanged(home):
    """Fails unless the default bucket's sessions are after the test as they were when it was called."""
    taken = []

    def take():
        taken.append(home.bucket.files("sessions"))

    yield take
    assert taken, "the test never said when nothing may change any more"
    assert home.bucket.files("sessions") == taken[-1]


@pytest.fixture(scope="session")
def observed(tmp_path_factory):
    """Every probe of tests/guests under several circumstances, and the home of one of them."""
    return observe_all(tmp_path_factory.mktemp)


@pytest.fixture(scope="session")
def seen(observed):
    """What each probe saw, under each of several circumstances."""
    return observed[0]
