# SPDX-License-Identifier: MIT
#
# The front door: one line per thing that people do here (`make help`). The build itself is CMake's, by the presets of
# CMakePresets.json; everything that is made lies under build/.

JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DEMO   := build/demo
TEXT   := build/kjv.txt
TIME   ?= 20

.DEFAULT_GOAL := build
.PHONY: help deps build demo explore test test-all test-explore-all test-release test-quick test-peers test-ports test-faults test-threads test-mutants test-platforms test-debian test-docs test-torch wheel docs \
        test-mpi test-sanitize test-coverage fuzz bench abi check format install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z%<>-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

deps: ## install the Debian packages that the build needs (tools/packages.txt)
	@tools/deps.sh

# $(call built,PRESET): configures and builds. Where configuring fails for want of packages, one line says how to fix it.
built = mkdir -p build && if ! cmake --preset $(1) >/dev/null 2>build/configure.log; then \
	tools/deps.sh --missing || cat build/configure.log >&2; exit 1; fi && $(2) cmake --build --preset $(1) -j $(JOBS)
quietly := tools/quietly.sh
tested   = $(quietly) ctest -j $(JOBS) --preset $(1)

build: ## compile libraries and tool into build/default
	@$(call built,default)

# deps first, also under make -j: the build needs what it installs.
demo: deps ## compare seven encodings on a real text (a few minutes) and say where the report is
	@$(MAKE) --no-print-directory build
	@test -s $(TEXT) || tools/kjv_text.sh $(TEXT)
	@rm -rf $(DEMO).partial
	@build/default/posenc compare --preset quick -o $(DEMO) $(TEXT)
	@echo "The report: $(DEMO)/report.html"

test: ## house rules and all tests but the long ones (six minutes on two cores)
	@tools/deps.sh --tests
	@$(call built,tests,$(quietly))
	@$(MAKE) --no-print-directory check
	@$(call tested,default) -LE '^long$$'

# jansson's source, with which the page reads a model's config.json; without a network it does not.
json := tools/deps.sh --sources build/sources jansson >build/sources.log 2>&1 || echo "make: jansson's source cannot be fetched, so the page reads no config.json (build/sources.log)"

explore: ## build/explore.html, a page to play with: the library runs in it (needs clang, lld, wasi-libc: tools/packages.txt)
	@mkdir -p build; $(json)
	@$(MAKE) --no-print-directory build
	@build/default/posenc explore -o build/explore.html
	@echo "The page: build/explore.html"

test-all: test ## that; figures and instruction sets; mpirun; the quick tests under ASan and UBSan; 20 s of each fuzzer (40 min.)
	@tools/deps.sh --all
	@$(json)
	@$(call built,tests,$(quietly))
	@$(call tested,default) -L '^long$$' -E '^cross/'
	@if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then $(MAKE) --no-print-directory test-mpi; \
	else echo "make test-all: Open MPI is missing, so compare under mpirun was not tested (docs/slurm.md)"; fi
	@$(MAKE) --no-print-directory test-sanitize ONLY="-LE '^(slow|long)'"
	@$(MAKE) --no-print-directory fuzz

test-release: test-all test-sanitize test-explore-all test-platforms test-debian wheel test-coverage test-peers test-torch test-ports test-docs test-faults test-threads test-mutants ## that, sanitizers, platforms, packages, coverage, PyPI, torch (of PYTHON), ports, handbook, faults, threads, mutants
	@$(call tested,default) -R '^cross/'
	@$(MAKE) --no-print-directory fuzz TIME=300

test-quick: ## the tests that take seconds, for the edit loop
	@$(call built,tests,$(quietly))
	@$(call tested,default) -LE '^(slow|long)$$'

# An encoding has its own tests and those that ask every encoding (tests/CMakeLists.txt), and transcripts that name it or
# ask every encoding (EVERY of tests/cli/run.py).
test-%: ## all that holds for an encoding, e.g. make test-alibi; else the tests whose name contains %
	@$(call built,tests,$(quietly))
	@if grep -q '[ ,]$*)$$' src/encodings/encodings.def; then \
	$(call tested,default) -L '^($*|rooms)$$' && tests/cli/run.py --about $* build/default/posenc; \
	else $(call tested,default) -R '$*'; fi

test-explore-all: ## every picture of the explorer's page against the tool's, in a headless chromium (minutes)
	@mkdir -p build; $(json)
	@$(call built,tests,$(quietly)) --target posenc_tool
	@tests/explore/test_explore.py build/default/posenc --all

test-peers: build ## model files made anew by transformers, gguf and safetensors (PyPI), and read
	@tests/peers/run.sh build/default/posenc build/peers $(KEEP)

test-ports: ## 330 rotations and 75 scores, right and broken, SEED=N or drawn; PYTHON has NumPy
	@$(call built,tests,$(quietly)) --target posenc_tool
	@$(or $(PYTHON),python3) tests/diagnose/ports.py build/default/posenc $(if $(SEED),--seed $(SEED))
	@$(or $(PYTHON),python3) tests/diagnose/scores.py build/default/posenc $(if $(SEED),--seed $(SEED))

test-docs: docs ## the handbook's programs, commands and links (minutes)
	@$(call built,tests,$(quietly)) --target posenc_tool posenc_core_module
	@tests/docs/handbook.py --run build/default/posenc build/docs build/default

test-faults: ## each allocation and each call of the system failing in turn, compare killed 50 times (hours)
	@$(call built,tests,$(quietly)) --target posenc_tool posenc_faults posenc_short
	@tests/faults/allocations.py --each build/default/posenc build/default/tests/libposenc_faults.so
	@tests/faults/names.py build/default/posenc --each
	@tests/faults/system.py build/default/posenc build/default/tests/libposenc_faults.so
	@tests/runs/test_kills.sh $(CURDIR) $(CURDIR)/build/default/posenc

test-threads: ## what runs on threads, under ThreadSanitizer with the pool of POSIX threads
	@$(call built,threads,$(quietly))
	@$(call tested,threads)

test-mutants: ## a hundred operators of engine and encodings changed, each noticed by a test or not (hours)
	@$(call built,tests,$(quietly))
	@tools/mutate.py

test-platforms: ## compilers, configurations, musl, ARM, Windows: the table of docs/reliability.md (NAME=..: one row)
	@tools/deps.sh --platforms
	@JOBS=$(JOBS) tools/platforms.sh $(NAME)

test-debian: ## the Debian packages and the README's two commands where nothing else is installed (as root; STEP=..: one step)
	@tools/deps.sh --debian
	@tests/install/debian.sh $(CURDIR) build/debian $(STEP)

# torch and transformers are gigabytes: they are taken from the Python of PYTHON, a virtual environment for example.
test-torch: ## posenc.torch under the torch and transformers of PYTHON=.../bin/python (docs/python.md)
	@$(call built,tests,$(quietly)) --target posenc_core_module trace_steps
	@PYTHONPATH=build/default/python POSENC_TRACE=$(CURDIR)/build/default/tests/trace_steps $(or $(PYTHON),python3) -m pytest -q -p no:cacheprovider python/tests/torch

wheel: ## the Python wheel, in build/wheel; installed in a bare environment and tried (needs PyPI)
	@python/wheel.sh build/wheel

# One source differs, so the default folder is lent for it; each preset of that folder says POSENC_MPI anew.
test-mpi: ## compare under mpirun with 2 and 4 processes, one of them killed (needs libopenmpi-dev openmpi-bin)
	@cmake --preset tests -DPOSENC_MPI=ON >/dev/null && $(quietly) cmake --build --preset tests -j $(JOBS) --target posenc_tool
	@$(call tested,default) -R '^mpi/'
	@$(call built,tests,$(quietly)) --target posenc_tool

test-sanitize: ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer (an hour; make test-all runs the quick ones)
	@$(call built,sanitize,$(quietly))
	@$(call tested,sanitize) $(ONLY)

test-coverage: ## how many lines and branches of each folder the tests of `make test` run
	@$(call built,coverage,$(quietly))
	@find build/coverage -name '*.gcda' -delete
	@$(call tested,coverage) -LE '^long$$'
	@tools/coverage.py build/coverage

fuzz: ## each fuzzer of tests/fuzz for TIME seconds (20) or RUNS inputs, or one: make fuzz NAME=api (needs clang)
	@RUNS=$(RUNS) tools/fuzz.sh $(TIME) $(NAME)

# Debian's own Python has Debian's Sphinx, whatever else is in PATH.
docs: ## the handbook, English and Chinese: build/docs/index.html (a few minutes; installs Sphinx, MyST and furo)
	@tools/deps.sh --docs
	@$(call built,default)
	@docs/handbook/build.py build/default/posenc build/docs

bench: build ## speed of the kernels against this machine's own limits (docs/performance.md)
	@build/default/posenc bench

abi: ## store what the libraries promise to linkers (tests/abi), after a change that is meant
	@tests/abi/run.sh $(CURDIR) build/default/abi $(or $(CC),cc) cmake --update

check: ## the house: format, floors, rooms, public headers (tools/check_house.py)
	@python3 tools/check_house.py

format: ## let clang-format rewrite the sources in place
	@python3 tools/check_house.py --format

# The loader finds a new library in /usr/local/lib only after ldconfig.
install: build ## install to PREFIX (default /usr/local), below DESTDIR if set
	@cmake --install build/default --prefix $(PREFIX)
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi

clean: ## remove everything that was made
	@rm -rf build
