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

# mypy takes the longest and needs no service: it begins beside the others and is heard at its turn.
output=$(mktemp)
"$BIN/mypy" . >"$output" 2>&1 &
mypy=$!
trap 'kill "$mypy" 2>/dev/null || true; rm -f "$output"' EXIT
trap 'exit 130' INT TERM

hear_mypy() {
    code=0
    wait "$mypy" || code=$?
    cat "$output"
    return "$code"
}

check services "$BIN/python" -m scripts.services
check "ruff check" "$BIN/ruff" check .
check "ruff format" "$BIN/ruff" format --check .
check import-linter "$BIN/lint-imports"
check migrations scripts/check_migrations.sh
check mypy hear_mypy
# Three on two cores: most of the long tests wait most of the time. tests/distribution.py shares them out.
# In CI, which ends what takes too long, one that hangs must not keep the others from being told.
check pytest "$BIN/python" -m pytest -n 3 ${CI:+--maxfail=10} "$@"
