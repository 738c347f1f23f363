# Two commands are all a fresh machine needs: `make demo` and `make test`.

PYTHON ?= python3
WORKERS ?= 2
MATRIX ?= "torch==2.7.0 transformers==5.10.1" "torch transformers"
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint format bench docs matrix dist clean

demo: $(VENV)/.core
	$(BIN)/pellucid demo --out pellucid-demo

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Each set of versions gets an environment of its own; CI gives one set a machine.
matrix:
	PYTHON=$(PYTHON) WORKERS=$(WORKERS) .ci/matrix $(MATRIX)

dist: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_release.py
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-matrix pellucid-demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; type: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@
