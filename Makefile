# Needs Python 3.11 or 3.12, make and a package registry; everything else is installed into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup setup-dev demo test test-slow test-fuzz test-chaos lint bench bench-quick ui clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# Each stamp says which files the environment was made from, so that a changed pin installs again.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
	  || { echo "Python 3.11 or 3.12 is needed; name one: make PYTHON=/path/to/python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(HEADLESS)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# rapid-layout brings opencv-python, rapidocr opencv-python-headless; both are the module cv2, and the former
# needs libGL, which servers lack. Installing the latter last leaves its files in place.
HEADLESS = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  --force-reinstall --no-deps opencv-python-headless

setup: $(VENV)/.installed ## Make .venv and install the product

setup-dev: $(VENV)/.installed-dev ## The same with what tests and linters need

demo: setup ## Ingest the shipped samples and print what came out
	$(BIN)/ingest demo --home demo

ui: setup ## Open the web UI on this project's home (http://127.0.0.1:3000)
	$(BIN)/ingest up

# Two workers, as CI's machine has two cores; what one file shares is made once.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile

test: setup-dev ## Run the tests, but for those of the three targets below
	$(PYTEST) -m 'not slow and not graph and not fuzz and not chaos'

test-slow: setup-dev ## Run the slow tests: servers, terminals, Ray clusters, the whole graph in every case
	$(PYTEST) -m '(slow or graph) and not fuzz and not chaos'

test-fuzz: setup-dev ## Run the tests with made-up input: damaged files, and many examples of every property
	HYPOTHESIS_PROFILE=ci $(PYTEST) -m '(fuzz or hypothesis) and not chaos'

test-chaos: setup-dev ## Run the tests that kill processes, machines and connections
	$(PYTEST) -m chaos

lint: setup-dev ## Lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-dev ## Measure the product against the naive ways; on a quiet machine (CORPUS=folder: on your documents)
	$(BIN)/python -m ingest_tests.bench --json bench.json $(if $(CORPUS),--corpus '$(CORPUS)')

bench-quick: setup-dev ## The comparisons with the usual ways alone, on less of everything
	$(BIN)/python -m ingest_tests.bench --quick --json bench.json $(if $(CORPUS),--corpus '$(CORPUS)')

clean: ## Remove what was made here, except .venv
	rm -rf demo bench.json bench-memory.svg build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
