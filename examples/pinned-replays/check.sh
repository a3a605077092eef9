#!/bin/sh
# Replays what is pinned. With a component, `check.sh build/handler.wasm`, that runs in place of the
# recorded ones: it has to answer the same at every step.
set -eu

cd "$(dirname "$0")"
pugmark replay pins
if [ $# -gt 0 ]; then
    pugmark replay --with "$1" pins
fi
