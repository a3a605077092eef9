"""Reads a bucket over the command line, and checks what it says."""

import json
from collections import Counter


def events(home, session):
    """The JSON bodies of a session's log, in order."""
    lines = home.ok("cat", "-s", session, timeout=200).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def once_each(found, wanted, key):
    """Fails unless every wanted key is there once, and nothing else."""
    counts = Counter(event[key] for event in found if key in event)
    assert counts == Counter(wanted), (counts - Counter(wanted), Counter(wanted) - counts)


def verified(home):
    """Has every hash, chain and reference of the bucket checked."""
    return home.ok("verify", timeout=200)
