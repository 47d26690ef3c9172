#!/bin/sh
# Fails where a model changed without a migration.
set -eu
cd "$(dirname "$0")/.."
BIN=${VENV:-.venv}/bin
DATABASE_URL=$("$BIN/python" -c 'from tests.services import postgres_url; print(postgres_url())')
SECRET_KEY=${SECRET_KEY:-only-for-this-check}
export DATABASE_URL SECRET_KEY
exec "$BIN/python" manage.py makemigrations --check --dry-run
