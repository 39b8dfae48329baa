# Needs Python 3.11 to 3.13, make and a package registry; everything else is installed into .venv.
# Each candidate is started, because the shim of a version manager can point to an inactive version.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13; do $$p -c '' 2>/dev/null && echo $$p && exit; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup setup-dev demo test test-slow test-fuzz test-chaos lint bench bench-quick ui docs clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# A stamp file depends on the files with versions, so a changed pin triggers a new installation.
$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "Python 3.11, 3.12 or 3.13 is required; set it with: make PYTHON=/path/to/python3.13"; exit 2; }
	@echo "Installing about 7 GB into $(VENV); this takes several minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(HEADLESS)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# rapid-layout depends on opencv-python, rapidocr on opencv-python-headless. Both install the module cv2, and
# the former needs libGL, which servers lack. Installing the headless package last makes its files win.
HEADLESS = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  --force-reinstall --no-deps opencv-python-headless

setup: $(VENV)/.installed ## Create .venv and install the product

setup-dev: $(VENV)/.installed-dev ## Also install what tests and linters need

demo: setup ## Ingest the sample documents and print a summary
	$(BIN)/ingest demo --home demo

ui: setup ## Start the web UI for the home in this folder (for the demo: ingest up --home demo)
	$(BIN)/ingest up

# Two workers, since the CI machine has two cores; `loadfile` keeps the shared fixtures of a file together.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile

test: setup-dev ## Run the tests, except those of the three targets below
	$(PYTEST) -m 'not slow and not graph and not fuzz and not chaos'

test-slow: setup-dev ## Run the slow tests: servers, terminals, Ray clusters, the whole graph
	$(PYTEST) -m '(slow or graph) and not fuzz and not chaos'

test-fuzz: setup-dev ## Run the tests with generated input: damaged files, many examples per property
	HYPOTHESIS_PROFILE=ci $(PYTEST) -m '(fuzz or hypothesis) and not chaos'

test-chaos: setup-dev ## Run the tests that kill processes, machines and connections
	$(PYTEST) -m chaos

lint: setup-dev ## Lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup-dev ## Generate the reference pages: settings, CLI and tables
	$(BIN)/python -m ingest_tests.docs.reference

bench: setup-dev ## Measure the product; use a quiet machine (CORPUS=folder: your documents)
	$(BIN)/python -m ingest_tests.bench --json bench.json $(if $(CORPUS),--corpus '$(CORPUS)')

bench-quick: setup-dev ## Run only the comparisons with the usual libraries, on less data
	$(BIN)/python -m ingest_tests.bench --quick --json bench.json $(if $(CORPUS),--corpus '$(CORPUS)')

clean: ## Remove generated files, except .venv
	rm -rf demo bench.json bench-memory.svg build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
