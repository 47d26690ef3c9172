#!/bin/sh
# Installs what the demo needs and becomes `manage.py standalone --demo`; arguments are passed on.
set -eu
cd "$(dirname "$0")/.."
scripts/venv.sh requirements.txt requirements-demo.txt
# exec: a signal reaches the system itself, and its exit code is this command's.
exec "${VENV:-.venv}/bin/python" manage.py standalone --demo "$@"
