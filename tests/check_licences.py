"""Checks that every crate of the build has a licence that this project can ship with.

    cargo metadata --format-version 1 --locked | python3 tests/check_licences.py

Reads SPDX expressions: one side of an OR is enough, every side of an AND is needed.
"""

import json
import re
import sys

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


def allowed(expression):
    """Whether an SPDX expression can be met with allowed licences."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def alternatives():
        ok = all_of()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            ok = all_of() or ok
        return ok

    def all_of():
        ok = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            ok = one() and ok
        return ok

    def one():
        token = tokens.pop(0)
        if token == "(":
            ok = alternatives()
            tokens.pop(0)
            return ok
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in ALLOWED

    return alternatives()


def main():
    packages = json.load(sys.stdin)["packages"]
    refused = sorted(
        f"{package['name']} {package['version']}: {package['license'] or 'none'}"
        for package in packages
        if not (package["license"] and allowed(package["license"]))
    )
    for line in refused:
        print(f"licence not allowed: {line}", file=sys.stderr)
    print(f"{len(packages)} crates, {len(refused)} with a licence that is not allowed")
    sys.exit(1 if refused else 0)


main()
