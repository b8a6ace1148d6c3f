# SPDX-License-Identifier: Apache-2.0
# The thin door to the CMake build: each target installs what it needs, builds, runs.
.PHONY: all demo test test-slow test-shard bench deps-demo deps-test clean
JOBS ?= $(shell nproc)

# $(call step,TEXT,COMMAND): one line of progress; what COMMAND says goes to build/build.log, shown when it fails
step = @echo "$(1)"; $(2) >>build/build.log 2>&1 || { cat build/build.log; echo "make: $(1): failed (build/build.log)" >&2; exit 1; }

all: deps-demo
	@mkdir -p build && : >build/build.log
	$(call step,configuring build/,cmake --preset dev -Wno-dev)
	$(call step,building the programs,cmake --build build -j$(JOBS) --target programs)

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
	$(call step,building the benchmarks,cmake --build build -j$(JOBS))
	@tools/run-bench

clean:
	rm -rf build build-asan build-tsan build-fuzz build-coverage build-release build-aarch64
