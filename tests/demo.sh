#!/usr/bin/env bash
# The tour of the README, visibly, on your own default bucket: each command is shown before it runs.
# It adds three sessions there and makes the last one current; nothing else of yours is touched.
set -euo pipefail
exec 2>&1

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/setup.sh system python guests build
PATH="$PWD/target/debug:$PWD/target/venv/bin:$PATH"
unset PUGMARK_BUCKET

folder=target/demo
mkdir -p $folder
ln -sf "$PWD/target/guests/out/triage.wasm" "$PWD/target/debug/triage" "$PWD/examples/echo-python/agent.py" $folder
cd $folder
cat >issue.json <<'JSON'
{"action":"opened","issue":{"number":7,"title":"It crashes on start","body":"Since 1.3.","labels":[],"user":{"login":"ada","type":"User"}}}
JSON
cat >question.json <<'JSON'
{"action":"opened","issue":{"number":7,"title":"How do I start it?","body":"","labels":[],"user":{"login":"ada","type":"User"}}}
JSON

comment() { printf '\n# %s\n' "$*"; }

# Shows a command line, then runs it.
run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

comment "Start a session, a log of events in a bucket, and push an event."
run "pugmark start"
session=$(pugmark context | awk '/^session/ {print $2}')
run "pugmark push issue.json"

comment "A handler in the sandbox answers until it has nothing to do."
run "pugmark run -- ./triage.wasm"
run "pugmark cat"
run "pugmark log -A"

comment "Go back to before the issue arrived, with another one; the same source as a subprocess takes it."
run "pugmark fork -s $session:0 question.json"
run "pugmark run -- ./triage"
run "pugmark log -A"

comment "The minimal handler of the public Python SDK, unchanged."
run "pugmark start"
run "pugmark push <<<'{\"kind\":\"input\",\"text\":\"hello\"}'"
run "pugmark run --once -- python agent.py"
run "pugmark cat"
run "pugmark log -A"
