# SPDX-License-Identifier: Apache-2.0
# The thin door to the CMake build: each target installs what it needs, builds, runs.
.PHONY: all demo test test-slow test-shard bench deps-demo deps-test clean
JOBS ?= $(shell nproc)

all: deps-demo
	@cmake --preset dev -Wno-dev >/dev/null
	@cmake --build build -j$(JOBS) -- --no-print-directory

deps-demo:
	@tools/install-deps demo
deps-test:
	@tools/install-deps test

demo: all
	@build/bin/fullrank demo $(DEMO_ARGS)

test: deps-test
	@tools/run-tests

test-slow: deps-test
	@tools/run-tests --slow

test-shard: deps-test
	@tools/run-tests --shard

bench: all
	@tools/run-bench

clean:
	rm -rf build build-asan build-tsan build-fuzz build-coverage build-release build-aarch64
