# make demo   the whole service on a simulated world, with a funded token; ARGS="--port 9000" passes flags on
# make test   the fast set, under four minutes on two cores; REQUIRE=all: every test, and a skip is a failure;
#             ARGS="tests/calls -x" passes paths and flags to pytest, WORKERS=0 runs in one process
# make pythons  the fast set on each Python from 3.11 to 3.14 that this machine has, in an environment for each
# make mutants  faults put into the code one by one: each must turn the test file of its module red
# make serve  the service on live upstreams
# make lock   the lock files anew, after a change of dependencies
# make lint   style, types, import directions, known unsafe code
# make bench  every bar of docs/performance.md, the worst first; ARGS="--rows 1,9 --save FILE.json" passes flags on
# make peers  web frameworks and MCP servers to compare with, in environments of their own

WORKERS ?= auto
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
        -c constraints.txt pyproject.toml

.PHONY: demo test pythons mutants serve lint lock bench peers clients clean

demo: $(VENV)/.runtime
	@$(BIN)/toolserver demo $(ARGS)

serve: $(VENV)/.runtime
	@$(BIN)/toolserver serve $(ARGS)

# What is compiled is kept, whatever the environment says: without that each process compiles 850 files of tests anew.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8

# Where everything is required, tests that measure time run by themselves, after the others.
test: $(VENV)/.dev
ifeq ($(REQUIRE)$(ARGS),all)
	@$(PYTEST) -m "not alone" && $(PYTEST) -n 0 -m alone
else
	@$(PYTEST) $(ARGS)
endif

PYTHONS = python3.11 python3.12 python3.13 python3.14

# One after the other; which ones are missing is said, and a failure on one does not keep the others from running.
pythons:
	@failed=""; for python in $(PYTHONS); do \
	  if ! $$python --version >/dev/null 2>&1; then echo "$$python is not here"; continue; fi; \
	  echo "$$python"; \
	  venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  $(MAKE) --no-print-directory test VENV=$$venv PYTHON=$$python || failed="$$failed $$python"; \
	done; [ -z "$$failed" ] || { echo "failed on$$failed"; exit 1; }

mutants: $(VENV)/.dev
	@WORKERS=$(WORKERS) $(BIN)/python -m tests.mutants $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive toolserver tools rest_bridge catalog

bench: $(VENV)/.dev
	@$(BIN)/python -m bench $(ARGS)

peers: bench/.venv-peers bench/.venv-peers-mcp1 bench/node_modules

bench/.venv-%: bench/%.txt
	@$(PYTHON) -m venv $@
	@$@/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

bench/node_modules: bench/package.json
	@cd bench && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

clients: $(VENV)/.dev
	@tests/live/clients/install

clean:
	rm -rf $(VENV) .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/live/clients/node_modules tests/live/clients/.venv-mcp1 tests/live/clients/.venv-tlog tests/live/clients/.venv-wheel bench/.venv-peers bench/.venv-peers-mcp1 bench/node_modules

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	@$(PYTHON) -m venv $(VENV)

# Every dependency is checked against the hash in a lock file; then the project itself, which brings none.
$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml requirements.txt
	@echo "setting up, a minute or so …"
	@$(PIP) --require-hashes -r requirements.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q toolserver tools rest_bridge catalog
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@echo "setting up for development, another minute …"
	@$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@

# After a change of dependencies: write both lock files anew from the versions in constraints.txt.
lock: $(VENV)/bin/python
	@$(PIP) -c constraints.txt uv
	@$(LOCK) --extra build -o requirements.txt
	@$(LOCK) --extra dev -o requirements-dev.txt
	@$(LOCK) --extra fast --extra postgres --extra redis -o requirements-server.txt
