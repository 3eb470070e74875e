# make verify: on a fresh machine with Python 3.11 or newer, install into .venv and check the claims on embedded real data
# make test:   the same with the development tools, and the tests; both are quick the second time

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
FOLDERS := solvers problems theory proofs_check
PROCESSES ?= 2

.PHONY: verify test test-all lint types imports links notebooks notebooks-check figures figures-check docs docs-check clean

verify: $(VENV)/.installed
	$(BIN)/verify-rates check --suite quick

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(PROCESSES) -m "not slow"

test-all: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(PROCESSES)

lint: $(VENV)/.installed-dev types imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry .

types: $(VENV)/.installed-dev links
	cd links && ../$(BIN)/mypy --config-file ../pyproject.toml --cache-dir ../.mypy_cache -p verify_rates

imports: $(VENV)/.installed-dev links
	cd links && ../$(BIN)/lint-imports --no-cache ../pyproject.toml

# The package mapping of pyproject.toml as folders, for tools that do not read it.
links:
	rm -rf links && mkdir -p links/verify_rates
	for f in verify_rates/*.py verify_rates/*.json $(FOLDERS); do ln -s "../../$$f" links/verify_rates/; done

# Notebooks are made from notebooks/*.py and not kept; the check runs them and writes nothing.
notebooks: $(VENV)/.installed-dev
	$(BIN)/python notebooks/build.py

notebooks-check: $(VENV)/.installed-dev
	$(BIN)/python notebooks/build.py --check

# The figure of the README; the check compares data.
figures: $(VENV)/.installed
	$(BIN)/verify-rates figures --out docs/figures --only error-feedback

figures-check: $(VENV)/.installed
	$(BIN)/verify-rates figures --out docs/figures --only error-feedback --check

# A page a paper and their index, from the record and the kept results of its checks; the check compares texts and data.
docs: $(VENV)/.installed
	$(BIN)/verify-rates docs --out docs/papers --index docs/README.md

docs-check: $(VENV)/.installed
	$(BIN)/verify-rates docs --out docs/papers --index docs/README.md --check

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "verify-rates needs Python 3.11 or newer; name it with make PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[dev,docs]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) links build *.egg-info .mypy_cache .ruff_cache .pytest_cache
