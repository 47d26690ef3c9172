#!/bin/sh
# Fails where a model changed without a migration.
set -eu
cd "$(dirname "$0")/.."
BIN=${VENV:-.venv}/bin
DATABASE_URL=$("$BIN/python" -c 'from tests.services import postgres_url; print(postgres_url())')
SECRET_KEY=${SECRET_KEY:-only-for-this-check}
# Neither is asked anything here; without an address the system check would refuse.
REDIS_URL=${REDIS_URL:-redis://127.0.0.1:6379/0}
BROKER_URL=${BROKER_URL:-pyamqp://guest:guest@127.0.0.1:5672//}
export DATABASE_URL SECRET_KEY REDIS_URL BROKER_URL
exec "$BIN/python" manage.py makemigrations --check --dry-run
