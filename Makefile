# make demo   run the whole service on a simulated world, with a funded token; ARGS="--port 9000" passes flags on
# make month  walk an operator's month on the demo, from the first quote to an archive that is verified elsewhere
# make test   run the fast set, under three minutes on two cores; REQUIRE=all: every test, a skip is a failure, and what
#             failed is run a second time; ARGS="tests/calls -x" passes paths and flags to pytest, WORKERS=0 runs in one
#             process, CPU=1 tells which files take most CPU
# make pythons  run the fast set on each installed Python from 3.11 to 3.14, each in its own environment; BESIDES=.venv
#             leaves out the version of an environment where it has run already
# make mutants  insert faults into the code one by one: each must fail the tests of its room
# make hosts  ask real hosts of models everyday questions, and say what their models were shown: Claude Code, Codex CLI, Gemini
#             CLI, openai-agents and LangChain, installed from npm and PyPI
# make house  measure how large the product is and how it is cut; ARGS="--calls" counts the files that work for a call
# make serve  run the service on live upstreams
# make lock   write the lock files again, after a change of dependencies
# make lint   check style, types, import directions and known unsafe code
# make bench  measure every bar of docs/performance.md, the worst first; ARGS="--rows 1,9 --save FILE.json" passes flags on
# make peers  install web frameworks and MCP servers for comparison, in their own environments

WORKERS ?= auto
PYTHONS = python3.14 python3.13 python3.12 python3.11
# The newest supported one that runs: a version manager may have names on the path that do not.
PYTHON ?= $(shell for name in $(PYTHONS) python3; do $$name --version >/dev/null 2>&1 && echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
NPM := npm install --no-package-lock --no-audit --no-fund --loglevel=error
LOCKED := --require-hashes --no-deps -r
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
        -c constraints.txt

.PHONY: demo month test pythons mutants house serve lint lock bench peers clients hosts clean

demo: $(VENV)/.runtime
	@$(BIN)/toolserver demo $(ARGS)

month: $(VENV)/.dev
	@$(BIN)/python -m tests.month $(ARGS)

serve: $(VENV)/.runtime
	@$(BIN)/toolserver serve $(ARGS)

# Bytecode is kept, even if the environment disables it: otherwise each process compiles 850 test files again.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8

HOSTS_AT = tests/hosts

# When everything is required, what failed is run again, alone; so it is where SECOND_LOOK=1 asks for it.
ifeq ($(REQUIRE),all)
SECOND_LOOK = 1
WITH = clients
MAKEFLAGS += --jobs=2
endif
ifneq ($(filter-out 0,$(HOSTS)),)
WITH += $(HOSTS_AT)/.installed
endif
test: $(VENV)/.dev $(WITH)
ifeq ($(SECOND_LOOK),1)
	@PYTHONDONTWRITEBYTECODE= WORKERS=$(WORKERS) $(BIN)/python -m tests.second_look $(ARGS)
else
	@$(PYTEST) $(ARGS)
endif

# The versions run one after the other, also those that a version manager keeps off the path. Missing ones are reported,
# and a failure on one does not stop the others.
pythons:
	@failed=""; for name in $(PYTHONS); do \
	  found=""; number=$${name#python}; \
	  for python in $$name "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$number.*/bin/$$name \
	      "$$HOME"/.local/share/uv/python/cpython-$$number.*/bin/$$name; do \
	    $$python --version >/dev/null 2>&1 && found=$$python && break; \
	  done; \
	  if [ -z "$$found" ]; then echo "$$name is not here"; continue; fi; \
	  if [ -n "$(BESIDES)" ] && [ -e "$(BESIDES)/bin/$$name" ]; then echo "$$name has run in $(BESIDES)"; continue; fi; \
	  echo "$$name"; \
	  $(MAKE) --no-print-directory test REQUIRE= VENV=.venv-$$number PYTHON=$$found || failed="$$failed $$name"; \
	done; [ -z "$$failed" ] || { echo "failed on$$failed"; exit 1; }

mutants: $(VENV)/.dev
	@WORKERS=$(WORKERS) $(BIN)/python -m tests.mutants $(ARGS)

house: $(VENV)/.dev
	@$(BIN)/python -m tests.house $(ARGS)

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
	@cd bench && $(NPM)
	@touch $@

# Programs from the npm registry are installed while the environment is made.
CLIENTS = tests/live/clients
clients: $(CLIENTS)/.installed $(CLIENTS)/node_modules/.installed

$(CLIENTS)/.installed: $(VENV)/.dev $(CLIENTS)/install
	@$(CLIENTS)/install
	@touch $@

$(CLIENTS)/node_modules/.installed: $(CLIENTS)/package.json
	@cd $(CLIENTS) && $(NPM)
	@touch $@

# Node.js and clients without a model are among the clients.
hosts: clients $(HOSTS_AT)/.installed
	@HOSTS=1 CONVERSATIONS=1 REQUIRE=all $(PYTEST) $(HOSTS_AT) $(ARGS)

$(HOSTS_AT)/.installed: $(VENV)/bin/python $(HOSTS_AT)/package.json $(HOSTS_AT)/agents/requirements.txt
	@cd $(HOSTS_AT) && $(NPM)
	@$(BIN)/python -m venv $(HOSTS_AT)/.venv-agents
	@$(HOSTS_AT)/.venv-agents/bin/python -m pip install --quiet --disable-pip-version-check -r $(HOSTS_AT)/agents/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) .venv-3.* flaky-tests.json .pytest_cache .mypy_cache .ruff_cache .hypothesis $(CLIENTS)/.installed $(CLIENTS)/node_modules $(CLIENTS)/.venv-* $(HOSTS_AT)/.installed $(HOSTS_AT)/node_modules $(HOSTS_AT)/.venv-agents bench/.venv-peers bench/.venv-peers-mcp1 bench/node_modules

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	@$(PYTHON) -m venv $(VENV)

# Every dependency is installed with the hash in a lock file; then the project itself, without dependencies. A lock file
# names all dependencies, so pip must not resolve any: an older pip requests the newest release of a package that another
# one names with an extra, and then refuses it because its hash is not in the file. `pip check` reports missing packages.
# uv installs in a quarter of pip's time; where it does not run, or cannot read what pip is configured to read, pip does it.
# What only development needs is compiled when it is first imported: two thirds of its files never are.
$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml requirements.txt requirements-installer.txt
	@echo "setting up, half a minute or so …"
	@$(PIP) $(LOCKED) requirements-installer.txt || echo "uv does not install here: pip takes longer"
	@$(UV) --compile-bytecode $(LOCKED) requirements.txt || $(PIP) $(LOCKED) requirements.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -j 0 toolserver tools rest_bridge catalog
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@echo "setting up for development, as long again …"
	@$(UV) $(LOCKED) requirements-dev.txt || $(PIP) $(LOCKED) requirements-dev.txt
	@$(BIN)/uv pip check --quiet --python $(BIN)/python || $(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

# After a change of dependencies, write the lock files again from the versions in constraints.txt.
lock: $(VENV)/bin/python
	@$(PIP) -c constraints.txt uv
	@echo uv | $(LOCK) - -o requirements-installer.txt
	@$(LOCK) pyproject.toml --extra build --extra cards -o requirements.txt
	@$(LOCK) pyproject.toml --extra dev -o requirements-dev.txt
	@$(LOCK) pyproject.toml --extra cards --extra fast --extra postgres --extra redis -o requirements-server.txt
