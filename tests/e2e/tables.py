"""The tables in docs/ that the tests write."""

import os

from pug import ROOT


def check(file, section, found):
    """Fails unless a file of docs/ has `found` between the marks of a section; writes it there where
    PUGMARK_BLESS is set."""
    path = ROOT / "docs" / file
    begin, end = f"<!-- {section}: begin -->\n", f"<!-- {section}: end -->"
    head, rest = path.read_text().split(begin)
    kept, tail = rest.split(end)
    found = f"\n{found.strip()}\n\n"
    if os.environ.get("PUGMARK_BLESS"):
        path.write_text(head + begin + found + end + tail)
    else:
        assert kept == found, (
            f"docs/{file} is not what the tests find: `tests/run.sh tables` writes it"
        )
