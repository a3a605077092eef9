# What a target does is at the head of the script that it calls.

.PHONY: build setup test demo bench install clean

build: setup
	cargo build --release --locked -p pugmark

setup:
	tests/setup.sh system python webhooks guests

test:
	tests/run.sh

demo:
	tests/demo.sh

# BENCH_ARGS='--only ab' measures a part of it.
bench: build
	tests/setup.sh large
	cargo run --release --locked -p pugmark-bench -- --large-component target/bench/large.wasm $(BENCH_ARGS)
	target/venv/bin/python tests/bench/python.py

install:
	cargo install --locked --path host/cli

clean:
	cargo clean
