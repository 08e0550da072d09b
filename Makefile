# SPDX-License-Identifier: MIT
#
# The front door: one line per thing that people do here (`make help`). The build itself is CMake's, by the presets of
# CMakePresets.json; everything that is made lies under build/.

JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DEMO   := build/demo
TEXT   := build/kjv.txt

.DEFAULT_GOAL := build
.PHONY: help deps build demo test test-quick test-sanitize test-peers bench check format install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z%<>-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

deps: ## install the Debian packages of tools/packages.txt that are missing
	@tools/deps.sh

build: ## compile libraries and tool into build/default
	@cmake --preset default >/dev/null
	@cmake --build --preset default -j $(JOBS)

# deps first, also under make -j: the build needs what it installs.
demo: deps ## compare seven encodings on a real text (a few minutes) and say where the report is
	@$(MAKE) --no-print-directory build
	@test -s $(TEXT) || tools/kjv_text.sh $(TEXT)
	@rm -rf $(DEMO).partial
	@build/default/posenc compare --preset quick -o $(DEMO) $(TEXT)
	@echo "The report: $(DEMO)/report.html"

test: ## everything: check, all tests, all tests again under ASan and UBSan, compare under mpirun
	@tools/deps.sh --tests
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory check
	@ctest --preset default -j $(JOBS)
	@$(MAKE) --no-print-directory test-sanitize
	@if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then $(MAKE) --no-print-directory test-mpi; \
	else echo "make test: Open MPI is missing, so compare under mpirun was not tested (docs/slurm.md)"; fi

test-quick: build ## the tests that take seconds, for the edit loop
	@ctest --preset default -LE slow -j $(JOBS)

test-%: build ## the tests whose name contains %, e.g. make test-alibi
	@ctest --preset default -R '$*' --no-tests=error

test-peers: build ## model files made anew by transformers, gguf and safetensors (PyPI), and read
	@tests/peers/run.sh build/default/posenc build/peers $(KEEP)

test-mpi: ## compare under mpirun with 2 and 4 processes, one of them killed (needs libopenmpi-dev openmpi-bin)
	@cmake --preset mpi >/dev/null
	@cmake --build --preset mpi -j $(JOBS) --target posenc_tool
	@ctest --preset mpi -R '^mpi/' --no-tests=error

test-sanitize: ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --preset sanitize >/dev/null
	@cmake --build --preset sanitize -j $(JOBS)
	@ctest --preset sanitize -j $(JOBS)

bench: build ## speed of the kernels against this machine's own limits (docs/performance.md)
	@build/default/posenc bench

check: ## the house: format, floors, rooms, public headers (tools/check_house.py)
	@python3 tools/check_house.py

format: ## let clang-format rewrite the sources in place
	@python3 tools/check_house.py --format

install: build ## install to PREFIX (default /usr/local), below DESTDIR if set
	@cmake --install build/default --prefix $(PREFIX)

clean: ## remove everything that was made
	@rm -rf build
