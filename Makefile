# Python 3.11 or newer and make are enough: every target installs what it needs into .venv, once.
# Another Python: make PYTHON=/path/to/python3.12 demo

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PYTHONS := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help setup demo check lint unit test bench clean

help:
	@echo "make demo    run a small graph with everything embedded"
	@echo "make setup   install everything for development into $(VENV)"
	@echo "make check   format, lint, types, layers, unit tests"
	@echo "make test    all checks and tests, with real Redis and real workers"
	@echo "make bench   the benchmarks"
	@echo "make clean   remove what these commands made"

setup: $(VENV)/.dev

demo: $(VENV)/.local
	@$(BIN)/graphrun demo

check: lint unit

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/python -m pytest tests/unit

test: lint
	$(BIN)/python -m pytest

bench: $(VENV)/.dev
	@for file in bench/*.py; do echo "$$file"; $(BIN)/python "$$file" || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python on PATH may be too old, a version manager's stub that does not run, or lack venv: the first good one is taken.
$(BIN)/python:
	@for python in $(PYTHONS); do \
	  if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    exec "$$python" -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "no usable Python 3.11 or newer among: $(PYTHONS)" >&2; \
	echo "install one with its venv module (on Debian and Ubuntu: apt install python3-venv), or say make PYTHON=..." >&2; \
	exit 1

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing graphrun and its development tools into $(VENV)"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/.local $@

$(VENV)/.local: pyproject.toml | $(BIN)/python
	@echo "installing graphrun with its embedded servers into $(VENV)"
	@$(PIP_INSTALL) --editable '.[local]'
	@touch $@
