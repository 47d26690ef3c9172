# Punctual: the commands of a working day. `make` alone lists them.
PYTHON ?= python3
VENV ?= .venv
# Passed on: to `manage.py standalone` by demo, to pytest by test, to the benchmarks by bench, to
# `manage.py chaos` by chaos.
ARGS ?=

BIN := $(VENV)/bin
export PYTHON VENV

.DEFAULT_GOAL := help
.PHONY: help venv demo services test test-all bench chaos lint format types arrows migrations clean

help: ## List the targets
	@echo "Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '  %-11s %s\n' "$$name" "$$text"; done
	@echo "Variables:"
	@echo "  PYTHON=$(PYTHON)  the interpreter (3.11 to 3.13) that makes the virtual environment"
	@echo "  VENV=$(VENV)  the folder of the virtual environment"
	@echo "  ARGS=  passed on: make demo ARGS=--once, make test ARGS='-k schedule'"

venv: ## Make the virtual environment and install everything in it
	@scripts/venv.sh requirements.txt requirements-demo.txt requirements-dev.txt

demo: ## Install and run the whole system with demo jobs; Ctrl-C stops it (ARGS=--once: exit after one run of each)
	@exec scripts/demo.sh $(ARGS)

services: venv ## Find PostgreSQL, Redis, RabbitMQ, Docker, a browser; on Debian as root install and start what is missing
	@exec $(BIN)/python -m scripts.services

test: ## Run everything that CI runs: services, ruff, mypy, import-linter, migrations, pytest
	@exec scripts/test.sh $(ARGS)

test-all: ## The same with the longest tests of faults, and those that hold figures; for a machine with nothing else to do
	@PUNCTUAL_TEST_ALL=1 exec scripts/test.sh $(ARGS)

bench: venv ## Measure what a run costs (ARGS="--only dispatch --json": one benchmark, and on standard output JSON alone)
	@$(BIN)/python -m scripts.services >&2
	@exec $(BIN)/python -m benchmarks $(ARGS)

chaos: venv ## Kill and cut while runs are due, and count what was lost (ARGS="--runs 20000 --minutes 5 --seed 7 --json")
	@$(BIN)/python -m scripts.services >&2
	@exec $(BIN)/python manage.py chaos $(ARGS)

lint: venv ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: venv ## ruff: put the format right, and what it can repair
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: venv ## mypy, strict
	@$(BIN)/mypy .

arrows: venv ## import-linter: the layers and who may import what
	@$(BIN)/lint-imports

migrations: venv ## Say whether a model changed without a migration
	@exec scripts/check_migrations.sh

clean: ## Remove the virtual environment and caches (keeps .punctual, the demo's data)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
