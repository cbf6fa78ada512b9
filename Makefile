# SPDX-License-Identifier: Apache-2.0
# Edges only: what is made from what. `make demo` and `make test` need nothing but Debian, root and this folder.
SHELL := /bin/bash
.DEFAULT_GOAL := all

ARCH := $(subst x86_64,x64,$(subst aarch64,arm64,$(shell uname -m)))
NODE := node_modules/node-linux-$(ARCH)/bin/node
RUN := $(NODE) --conditions=source
CLANG := clang-19
# The programs read packets and rows as other types than they were written as; without the flag a store may be lost.
BPF_FLAGS := -g -O2 -fno-strict-aliasing -target bpf -mcpu=v2 -Wall -Wextra -Werror -Wno-unused-function -Wno-address-of-packed-member \
	-I bpf/include -I /usr/include/$(shell uname -m)-linux-gnu
BPF_OBJECTS := $(patsubst %.bpf.c,%.bpf.o,$(wildcard bpf/*.bpf.c bench/*.bpf.c)) bpf/tc.floor.bpf.o bpf/xdp.floor.bpf.o
ADDON := build/Release/netplane_native.node
SHIM := build/netplane-cni
DATASTORE := build/netplane-datastore
TS_SOURCES := $(shell find agent lib lab demo cli operator controllers flows upgrade bench soak testkit native -name '*.ts' 2>/dev/null)

# In the order in which `make soak` runs them: the first have seeds.
SEEDED_FORMS := manifests pods frames mutants
SOAK_FORMS := $(SEEDED_FORMS) fuzz lifecycle upgrade kubernetes kernels
MINUTES ?= 10

# What the quick loop remembers between its runs.
CACHE := .cache/check

.PHONY: all image deps packages built-for-tests bpf trace native shim ts unit-deps demo check t steady watch test test-all test-unit test-oracle test-kernel test-sanitized kernels bench \
	fuzz test-fuzz mutate faults seeds scale soak $(SOAK_FORMS:%=soak-%) kubernetes e2e types proto lint tidy lint-c lint-proto lint-cached format clean docs dist

all: bpf native shim ts

deps:
	@scripts/install-deps.sh build

node_modules/.package-lock.json: package.json package-lock.json scripts/npm-ci | deps
	@echo "  npm     node_modules"
	@for try in 1 2 3; do timeout 300 scripts/npm-ci >/dev/null && break; \
	  [ $$try = 3 ] && exit 1; echo "npm ci failed, trying again"; done
	@touch $@

# The compiler lists the headers of each object, so that a changed header rebuilds only what includes it.
bpf: $(BPF_OBJECTS)
%.bpf.o: %.bpf.c Makefile | deps
	@echo "  bpf     $@"
	@$(CLANG) $(BPF_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
	@llvm-strip-19 -g $@
# for kernels before 5.6: see compat.h
%.floor.bpf.o: %.bpf.c Makefile | deps
	@echo "  bpf     $@"
	@$(CLANG) $(BPF_FLAGS) -DNP_FLOOR -MMD -MP -MF $(@:.o=.d) -c $< -o $@
	@llvm-strip-19 -g $@
-include $(BPF_OBJECTS:.o=.d)

# Programs that write drops and new flows to /sys/kernel/tracing/trace_pipe. Back: rm bpf/*.o; make bpf
trace:
	@rm -f $(BPF_OBJECTS)
	@$(MAKE) --no-print-directory bpf BPF_FLAGS='$(BPF_FLAGS) -DNP_TRACE'

# node-gyp writes build/Makefile; that knows which file includes which, and builds what has changed.
GYP := $(NODE) node_modules/node-gyp/bin/node-gyp.js --silent --nodedir=node_modules/node-linux-$(ARCH)
native: $(ADDON)
build/Makefile: binding.gyp node_modules/.package-lock.json | deps
	@mkdir -p build
	@$(GYP) configure >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
	@touch $@
$(ADDON): build/Makefile $(wildcard native/*.cc native/*.h)
	@echo "  native  $@"
	@$(GYP) build >build/build.log 2>&1 || { cat build/build.log >&2; exit 1; }
	@touch $@

# The addon, and what other C there is, with sanitizers: a report of theirs ends the program. Tests run them. The addon's templates take half the
# time without optimization.
SANITIZERS := -g1 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZED := build/sanitized
SANITIZED_PROGRAMS := $(SANITIZED)/netplane-cni $(SANITIZED)/traffic
SANITIZED_ADDON := $(SANITIZED)/netplane_native.node
$(SANITIZED)/netplane-cni: cni/netplane-cni.c
$(SANITIZED)/traffic: $(wildcard bench/tools/*.c bench/tools/*.h)
$(SANITIZED_PROGRAMS): | deps
	@echo "  cc      $@"
	@mkdir -p $(@D)
	@$(CC) $(SANITIZERS) -Wall -Wextra -Werror -o $@ $(filter %.c,$^)
$(SANITIZED_ADDON): build/Makefile $(wildcard native/*.cc native/*.h)
	@echo "  native  $@"
	@$(MAKE) --silent --jobs=2 -C build builddir=sanitized CXXFLAGS='$(SANITIZERS) -O0 -D_GLIBCXX_ASSERTIONS' LDFLAGS='$(SANITIZERS)' \
	  >build/sanitized.log 2>&1 || { cat build/sanitized.log >&2; exit 1; }
	@touch $@

TRAFFIC := bench/tools/traffic
$(TRAFFIC): $(wildcard bench/tools/*.c bench/tools/*.h) | deps
	@echo "  cc      $@"
	@$(CC) -O2 -Wall -Wextra -Werror -o $@ $(filter %.c,$^)

# Static. The plugin runs on whatever the node has, outside of our image; the other rests in its container, and is small.
# CC=aarch64-linux-gnu-gcc for another machine.
shim: $(SHIM) $(DATASTORE)
$(SHIM): cni/netplane-cni.c
$(DATASTORE): scripts/image/netplane-datastore.c
$(SHIM) $(DATASTORE): | deps
	@echo "  cc      $@"
	@mkdir -p build
	@$(CC) -static -s -O2 -Wall -Wextra -Werror -o $@ $<

ts: dist/.built
dist/.built: $(TS_SOURCES) scripts/bundle-programs.ts scripts/bundling.ts tsconfig.json tsconfig.build.json node_modules/.package-lock.json
	@echo "  ts      dist"
	@$(NODE) node_modules/typescript-7/bin/tsc --incremental --tsBuildInfoFile dist/.tsbuildinfo -p tsconfig.build.json
	@$(RUN) scripts/bundle-programs.ts
	@touch $@

# The root file system of Dockerfile, without Docker: build/image, and as an image in one file. `make image` asks Debian for its packages each time; the
# file by itself, as tests want it, is there until something here changes that goes into it.
IMAGE := build/netplane.tar
image: all
	@rm -f $(IMAGE)
	@$(MAKE) --no-print-directory $(IMAGE)
$(IMAGE): $(BPF_OBJECTS) $(ADDON) $(SHIM) $(DATASTORE) dist/.built $(wildcard scripts/image/*) scripts/npm-ci LICENSE package.json package-lock.json
	@scripts/install-deps.sh image
	@rm -rf build/image
	@scripts/image/rootfs packages build/image
	@scripts/image/rootfs files build/image
	@$(RUN) scripts/image/main.ts

# netplanectl with Node inside, for machines that are no node: build/netplanectl-VERSION-linux-{amd64,arm64}.tar.gz
dist: node_modules/.package-lock.json
	@$(RUN) scripts/dist/main.ts

demo: all
	@scripts/install-deps.sh demo
	@$(NODE) dist/demo/main.js

# What unit tests run: TypeScript is run from its sources.
unit-deps: bpf native shim $(SANITIZED_PROGRAMS)

# Types, lint and unit tests.
check: unit-deps
	@$(RUN) test/check.ts

# One test file, or all of a folder, of any kind: make t F=test/kernel/packets.test.ts; T='part of a title' of it. What it runs is built first.
t: node_modules/.package-lock.json
	@$(RUN) test/one.ts $(F)

# One test file N times: a third of them under two busy loops, a third with half a processor, a third with pauses.
N ?= 20
steady: node_modules/.package-lock.json
	@$(RUN) test/steady.ts $(F) $(N)

# Runs again what a saved file concerns: unit tests, or those of F.
watch: unit-deps
	@$(RUN) test/one.ts --watch $(F)

# What tests run, two at a time: compilers, npm and dpkg leave a processor idle.
built-for-tests:
	@$(MAKE) --no-print-directory -j2 packages all unit-deps $(TRAFFIC) $(SANITIZED_ADDON)
packages: deps
	@scripts/install-deps.sh all

test: built-for-tests
	@NETPLANE_BUILT=true $(RUN) test/run.ts

# With what is outside of the gate: CONTRIBUTING.md names it. Or one part of that, whose row in test/parts.md is then written:
# PART=soak|scale|bench|kernels|fuzz|e2e|long|mutants|seeds|tidy.
test-all: built-for-tests
	@NETPLANE_BUILT=true $(RUN) test/run.ts $(if $(PART),part $(PART),all)

test-unit: all unit-deps
	@$(RUN) test/run.ts unit

# The addon's tests on the one with sanitizers; RUNS=… random calls.
test-sanitized: all $(SANITIZED_ADDON)
	@$(RUN) test/run.ts sanitized

# What C parses, given bytes that libFuzzer finds: SECONDS of each target, from what earlier runs have found. What one fails on is kept in build/fuzz.
SECONDS ?= 60
FUZZERS := $(patsubst test/fuzz/%.c,build/fuzz/%,$(wildcard test/fuzz/*.c))
$(FUZZERS): build/fuzz/%: test/fuzz/%.c $(wildcard cni/*.c bench/tools/*.c bench/tools/*.h) | deps
	@scripts/install-deps.sh fuzz
	@echo "  fuzz    $@"
	@mkdir -p $@.corpus
	@$(CLANG) $(SANITIZERS) -fsanitize=fuzzer -o $@ $<
FUZZ = ASAN_OPTIONS=detect_leaks=0 $$target -verbosity=0 -print_final_stats=1 -artifact_prefix=$$target.
fuzz: $(FUZZERS)
	@for target in $^; do echo "== $$target"; \
	  $(FUZZ) -max_total_time=$(SECONDS) $$target.corpus test/$${target#build/}.seeds || exit 1; \
	done

# The same bytes in every run, by SEED: so many of each target, five seconds. No folder is read or written but that of the first inputs.
FUZZ_RUNS := 150000
test-fuzz: $(FUZZERS)
	@for target in $^; do echo "== $$target"; inputs=(test/$${target#build/}.seeds/*); \
	  $(FUZZ) -seed=$(or $(SEED),1) -runs=$(FUZZ_RUNS) -seed_inputs=$$(IFS=,; echo "$${inputs[*]}") || exit 1; \
	done

# Truth tables of policy: the project's own, and those in CASES where that folder is.
CASES ?= ../shared/cases
test-oracle: all
	@$(RUN) test/oracle/run.ts $(CASES)

# Those that CI boots: the oldest and 5.15, whose images are in KERNELS where that folder is, and the newest of Debian.
export KERNELS ?= ../shared/kernels
test-kernel: all
	@scripts/install-deps.sh vm
	@$(RUN) test/run.ts vm

# Every kernel that test/kernel/vm/kernels.json names, one of each minor version, and the demo on the oldest: half an hour.
kernels: all
	@scripts/install-deps.sh demo vm
	@test/kernel/run --all

bench: all $(TRAFFIC)
	@scripts/install-deps.sh demo bench
	@$(NODE) dist/bench/main.js
	@$(RUN) scripts/bench-table.ts

# Does a test notice a small fault? COUNT mutants of FILES, drawn by SEED; survivors are listed: test/mutate/main.ts.
mutate: all
	@$(RUN) test/mutate/main.ts

# Is the gate red for each of ten faults that are made on purpose, and never unsteady? T='part of a name' of them.
faults: all unit-deps $(TRAFFIC) $(SANITIZED_ADDON) kubernetes
	@scripts/install-deps.sh all
	@$(RUN) test/faults/main.ts

# The property tests with TIMES seeds of chance; a seed that fails is printed, and is what SEED=… repeats.
TIMES ?= 10
seeds: all unit-deps
	@for try in $$(seq $(TIMES)); do export SEED=$$RANDOM$$RANDOM; \
	  $(RUN) test/run.ts unit $$(grep -rl fast-check test --include=*.test.ts | grep -vE '^test/(apiserver|kernel|native)/') && \
	  $(RUN) test/run.ts kernel $$(grep -rl fast-check test/kernel test/native --include=*.test.ts) || exit 1; done

# A large cluster in a real API server: the agent beside kube-proxy, and what nodes cost the server. A quarter of an hour; SCALE=1k: four minutes.
SCALE ?= 10k
scale: all kubernetes
	@scripts/install-deps.sh demo
	@$(NODE) dist/bench/scale/main.js --size $(SCALE)

# All forms, or FORM=…: MINUTES=10 of each that runs for a time; SEED=… for the same steps again, without those that have none.
soak:
	@for form in $(or $(FORM),$(if $(SEED),$(SEEDED_FORMS),$(SOAK_FORMS))); do $(MAKE) --no-print-directory soak-$$form || exit 1; done
soak-manifests soak-pods: soak-%: all kubernetes
	@scripts/install-deps.sh demo
	@$(NODE) dist/soak/main.js --form $*
soak-frames: all
	@scripts/install-deps.sh demo
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) FRAMES=1000000 $(RUN) test/one.ts test/kernel/frames.test.ts
soak-fuzz: all
	@$(MAKE) --no-print-directory fuzz SECONDS=$$(($(MINUTES) * 60))
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) RUNS=500000 $(MAKE) --no-print-directory test-sanitized
soak-mutants: mutate
soak-kernels: kernels
# The operator of 200 nodes has nothing to do for ten minutes, and writes nothing. It is killed at 51 random moments of
# three switches; then operator, agents and API server at 50 each, on real nodes under traffic.
soak-lifecycle: all kubernetes
	@scripts/install-deps.sh demo go e2e
	@NODES=200 IDLE_SECONDS=600 $(RUN) test/one.ts test/apiserver/operator/cost.test.ts
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) KILLS=17 $(RUN) test/one.ts test/apiserver/operator/switch.test.ts
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) MATRIX=whole ROUNDS=25 $(RUN) test/one.ts test/cluster/operator/switch.test.ts
# `upgrade run` is killed at 50 random moments, and at 20 of the step in which helm runs; then every version by every way of installing it, and old nodes in each mode.
soak-upgrade: all kubernetes
	@scripts/install-deps.sh demo go
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) KILLS=50 $(RUN) test/one.ts test/apiserver/upgrade/run.test.ts
	@SEED=$(or $(SEED),$$RANDOM$$RANDOM) KILLS=20 $(RUN) test/one.ts test/apiserver/upgrade/chart-kills.test.ts
	@MATRIX=whole $(RUN) test/one.ts test/apiserver/upgrade/versions.test.ts
	@MATRIX=whole $(RUN) test/one.ts test/lab/upgrade/old-node.test.ts
# the newest Kubernetes of the Go module proxy in the place of the pinned one
soak-kubernetes: all
	@scripts/install-deps.sh demo go e2e
	@version=$$($(RUN) testkit/kubernetes/main.ts newest) && echo "Kubernetes $$version" && KUBERNETES=$$version $(RUN) test/run.ts api e2e

# The real Kubernetes that end-to-end tests run, and `make bench` measures beside Netplane: built once, ten CPU minutes. KUBERNETES=1.37.2:
# that version in its place.
kubernetes: all
	@scripts/install-deps.sh go
	@$(RUN) testkit/kubernetes/main.ts

# Ours, and Kubernetes' own end-to-end tests, on a real cluster of this machine: hours; `make test` has a short form.
e2e: all
	@scripts/install-deps.sh demo go e2e
	@E2E=long $(RUN) test/run.ts api e2e

types: node_modules/.package-lock.json
	@$(NODE) node_modules/typescript-7/bin/tsc --noEmit --incremental --tsBuildInfoFile $(CACHE)/types.tsbuildinfo -p tsconfig.json

C_FILES = git ls-files '*.c' '*.h' '*.cc'
# as binding.gyp has them
NATIVE_FLAGS = -std=gnu++17 -Inode_modules/node-linux-$(ARCH)/include/node -Inode_modules/node-addon-api -DNAPI_VERSION=9 -DNAPI_CPP_EXCEPTIONS \
	-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL -DNODE_ADDON_API_DISABLE_DEPRECATED

# Code of the messages of flows: written beside their text, and committed.
PROTO := lib/flows/wire/goldmane
PROTOC = PATH=$(abspath $(dir $(NODE))):$$PATH protoc --plugin=protoc-gen-es=node_modules/.bin/protoc-gen-es \
	--es_opt=target=ts,erasable_syntax=true,import_extension=ts $(PROTO).proto
proto: node_modules/.package-lock.json
	@scripts/install-deps.sh lint
	@$(PROTOC) --es_out=.

lint-proto: node_modules/.package-lock.json
	@scripts/install-deps.sh lint
	@mkdir -p build/proto
	@$(PROTOC) --es_out=build/proto
	@cmp build/proto/$(PROTO)_pb.ts $(PROTO)_pb.ts || { echo "$(PROTO)_pb.ts is not what $(PROTO).proto says: make proto" >&2; exit 1; }

lint: types lint-c lint-proto
	@$(NODE) node_modules/eslint/bin/eslint.js .
	@$(NODE) node_modules/prettier/bin/prettier.cjs --check --log-level warn .

# Two minutes: outside of the gate.
tidy: node_modules/.package-lock.json
	@scripts/install-deps.sh lint
	@clang-tidy-19 --quiet $$(git ls-files 'native/*.cc') -- $(NATIVE_FLAGS) 2>/dev/null

lint-c:
	@scripts/install-deps.sh lint
	@$(C_FILES) | xargs clang-format-19 --dry-run --Werror

# Of files that have not changed it believes what it found in them before, whatever they import: lint, which CI runs, does not.
lint-cached: node_modules/.package-lock.json lint-c lint-proto
	@$(NODE) node_modules/eslint/bin/eslint.js --cache --cache-strategy content --cache-location $(CACHE)/eslint .
	@$(NODE) node_modules/prettier/bin/prettier.cjs --check --log-level warn --cache --cache-strategy content --cache-location $(CACHE)/prettier .

format: node_modules/.package-lock.json
	@$(NODE) node_modules/prettier/bin/prettier.cjs --write --log-level warn .
	@scripts/install-deps.sh lint
	@$(C_FILES) | xargs clang-format-19 -i

docs: all
	@$(RUN) scripts/generate-docs.ts

clean:
	rm -rf dist build bpf/*.o bpf/*.bpf.d bench/*.o bench/*.bpf.d $(CACHE) $(TRAFFIC) node_modules
