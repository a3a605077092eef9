#!/usr/bin/env bash
# Sets up, then runs every check and test.
#
#   tests/run.sh                 everything
#   tests/run.sh PART…           some of it: lint, unit, doc, e2e, stores, tables
#
# lint  formatting and clippy, no warnings; licences of all crates
# unit  cargo's tests of all crates: log, runtime, command line, guest SDK, examples, doc tests
# doc   the API documentation, no warnings
# e2e   pytest against the real binary; PYTEST_ARGS are passed on, as in PYTEST_ARGS='-k race'
# stores  the same against object stores that it starts on loopback (tests/stores)
# tables  the tables in docs/ that tests check, written anew from what they find; only when named
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/setup.sh

step() {
    printf '\n== %s\n' "$*" >&2
    local begun=$SECONDS
    "$@"
    printf '== %s s\n' "$((SECONDS - begun))" >&2
}

run_lint() {
    step cargo fmt --all --check
    step cargo fmt --manifest-path tests/guests/Cargo.toml --all --check
    step cargo clippy --workspace --all-targets --locked -- -D warnings
    step check_licences
}

check_licences() { cargo metadata --format-version 1 --locked | python3 tests/check_licences.py; }

run_unit() { step cargo test --workspace --locked --quiet; }

run_doc() { RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked; }

run_e2e() {
    local arguments=()
    read -ra arguments <<<"${PYTEST_ARGS:-}"
    step env PYTHONDONTWRITEBYTECODE=1 target/venv/bin/pytest tests/e2e "${arguments[@]}"
}

run_tables() {
    export PUGMARK_BLESS=1
    step cargo test -p pugmark-runtime --locked --quiet --test determinism
    step env PYTHONDONTWRITEBYTECODE=1 target/venv/bin/pytest \
        tests/e2e/test_guest_suite.py tests/e2e/test_hostile_guests.py
}

run_stores() {
    local arguments=()
    read -ra arguments <<<"${PYTEST_ARGS:-}"
    tests/stores/setup.sh
    step env PYTHONDONTWRITEBYTECODE=1 target/venv/bin/pytest tests/stores "${arguments[@]}"
}

parts=("$@")
[[ $# == 0 ]] && parts=(lint unit doc e2e stores)
for part in "${parts[@]}"; do
    declare -F "run_$part" >/dev/null || { printf 'there is no part %s; see the head of %s\n' "$part" "$0" >&2; exit 2; }
    "run_$part"
done
