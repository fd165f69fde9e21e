# Headrace: `make run` and `make test` need Python 3.11+ and make, nothing else.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; exit; }; done; echo python3)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# The first install takes the build tools alone: PySpark comes as source and is built with exactly these.
$(VENV)/ready: requirements.lock requirements-build.lock pyproject.toml bank/pyproject.toml
	@$(PYTHON) tools/need_python.py
	@echo "setting up $(VENV) (first time: about 800 MB to fetch, 2 to 4 minutes, then 2 more for kernels and a rehearsal)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --require-hashes -r requirements-build.lock
	@$(BIN)/pip install -q --progress-bar on --no-build-isolation --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --no-build-isolation --no-deps -e . -e bank
	@touch $@

setup: $(VENV)/ready  ## everything installed and fetched, nothing started
	@$(BIN)/headrace fetch

run: setup  ## the bank: decisions on made-up payments, a live page; Ctrl-C stops all of it
	@exec $(BIN)/python -m bank run

test: setup  ## the whole suite against real parts
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder  # else files of one long test come last

soak: setup  ## the property tests, twenty times as deep
	@HEADRACE_SOAK=20 $(BIN)/python -m pytest -m hypothesis --timeout 3600

lint: $(VENV)/ready  ## style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

check: lint test  ## lint, types, import rules, tests

chaos: setup  ## kill, stop and cut everything for half an hour, then the verdict
	@$(BIN)/headrace chaos --minutes 30

# The two left out need a folder, and a bank that runs.
bench: setup  ## speed, as ratios measured side by side
	@for b in $(filter-out benchmarks/handbook.py benchmarks/killed_twin.py,$(wildcard benchmarks/*.py)); do echo "== $$b"; $(BIN)/python $$b || exit 1; done

lock: $(VENV)/ready  ## renew the lock files (needs `pip install uv`)
	@uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml --extra train --group dev --group build -o requirements.lock
	@uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group pyproject.toml:build -o requirements-build.lock

clean:  ## stops the stack, removes what was made here (not the user's cache)
	@[ ! -x $(BIN)/headrace ] || $(BIN)/headrace down --quiet || true
	@rm -rf $(VENV) .headrace .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup run test soak lint check chaos bench lock clean
