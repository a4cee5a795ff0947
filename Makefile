# make demo   the whole service on a simulated world, with a funded token; ARGS="--port 9000" passes flags on
# make test   every test this machine can run; REQUIRE=all fails on anything skipped
# make serve  the service on live upstreams
# make lint   style, types, import directions
# make bench  the hot path, paid calls and the ledger against their peers, as tables

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test serve lint bench clients clean

demo: $(VENV)/.runtime
	@$(BIN)/toolserver demo $(ARGS)

serve: $(VENV)/.runtime
	@$(BIN)/toolserver serve $(ARGS)

test: $(VENV)/.dev
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	@$(BIN)/python -m bench $(ARGS)
	@$(BIN)/python -m bench.ledger

clients: $(VENV)/.dev
	@tests/live/clients/install

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/live/clients/node_modules tests/live/clients/.venv-mcp1 tests/live/clients/.venv-tlog

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setting up, a minute or so …"
	@$(PIP) -e .
	@$(BIN)/python -m compileall -q toolserver tools rest_bridge catalog
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "setting up for development, another minute …"
	@$(PIP) -e '.[dev]'
	@touch $@
