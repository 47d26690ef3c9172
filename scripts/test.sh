#!/bin/sh
# All that CI runs. Stops at the first check that fails; pytest comes last, so its closing line ends the output.
# Arguments are passed on to pytest.
set -eu
cd "$(dirname "$0")/.."
BIN=${VENV:-.venv}/bin

check() { # what it is called, command...
    echo "--- $1"
    shift
    "$@"
}

scripts/venv.sh requirements.txt requirements-demo.txt requirements-dev.txt
check services "$BIN/python" -m scripts.services
check "ruff check" "$BIN/ruff" check .
check "ruff format" "$BIN/ruff" format --check .
check mypy "$BIN/mypy" .
check import-linter "$BIN/lint-imports"
check migrations scripts/check_migrations.sh
check pytest "$BIN/python" -m pytest -n 2 --dist loadfile "$@"
