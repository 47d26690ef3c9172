"""Nonsense in any variable is refused: with its name, what it holds, and what is allowed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from scheduler_project.env import Refused
from tests.unit.test_documents import readings

ROOT = Path(__file__).resolve().parents[2]
NUMBER = ["abc", "-1", "1.5", "1e3", "٣", "9" * 40, "0x10"]
DURATION = ["soon", "-5m", "5 parsecs", "m", "999999999w", "1.5.5s"]
FLAG = ["maybe", "2", "truefalse", "да", "yes no"]
IMAGE = ["a b", "PYTHON:3", "http://x/y", "python:", "../x", "python:3 12"]
FILE = str(ROOT / "README.md")
FOLDER = [FILE, f"{FILE}/below", "/dev/null", "~nobody-of-that-name/x", "/" + "x" * 5000]
NETWORK = [
    "nonsense",
    "http://h",
    "{0}://",
    "{0}://h:abc",
    "{0}://h:0",
    "{0}://h:99999",
    "{0}://[::1",
    "{0}://h x",
]
DATABASE = [
    "nonsense",
    "mysql://h/x",
    "postgresql://h:abc/x",
    "postgresql://h:99999/x",
    "postgresql://[::1",
    "postgresql://h/x?nonsense=1",
    "postgresql://h/a b",
    "postgresql://u:%zz@h/x",
]
PATTERNS = ["a b", "{owner}/*", "{team", "[a-z]*", "a\tb", "é*"]
NONSENSE: dict[str, list[str]] = {
    "DATABASE_URL": DATABASE,
    "REDIS_URL": [
        *(text.format("redis") for text in NETWORK),
        *("redis://h/abc", "unix://", "unix:///s?db=x"),
        *("redis+sentinel://h:1", "redis+sentinel://a,b:x/jobs", "redis+sentinel://a,b/jobs/x"),
        *("redis+cluster://a,/", "redis+cluster://a,b/1", "redis://a,b/0"),
    ],
    "BROKER_URL": [
        *(text.format("pyamqp") for text in NETWORK),
        *("redis://h/abc", "redis+socket://", "amqp://a,b:x//", "redis+sentinel://a,b", "redis+cluster://a"),
    ],
    "ALLOWED_HOSTS": ["a b", "http://x", "x:8000", "x/y", "a,,*x*", "x\ty"],
    "CSRF_TRUSTED_ORIGINS": ["example.org", "ftp://x", "https://", "https://a b", "https://x/y", "*"],
    "DEBUG": FLAG,
    "PUNCTUAL_HTTPS": FLAG,
    "PUNCTUAL_HSTS": [*DURATION, "3661d"],
    "PUNCTUAL_PROXIES": [*NUMBER, "11"],
    "PUNCTUAL_CORS_ORIGINS": [
        "*",
        "null",
        "example.org",
        "https://*.example.org",
        "https://a/b",
        "https://a b",
    ],
    "PUNCTUAL_API_RATE": [*NUMBER, "1000001"],
    "PUNCTUAL_API_RATE_ANONYMOUS": [*NUMBER, "1000001"],
    "PUNCTUAL_LOGIN_RATE": [*NUMBER, "1000001"],
    "PUNCTUAL_LOGIN_FAILURES": [*NUMBER, "0", "1001"],
    "PUNCTUAL_LOGIN_LOCKOUT": [*DURATION, "0s", "31d"],
    "PUNCTUAL_HOME": FOLDER,
    "PUNCTUAL_PORT": [*NUMBER, "0", "65536"],
    "PUNCTUAL_NAMESPACE": ["a b", "a:b", "{a}", "a*", "ä", "x" * 64, "a\tb", "-a", "a.", "_"],
    "PUNCTUAL_SHARDS": [*NUMBER, "0", "4097"],
    "PUNCTUAL_WINDOW": [*DURATION, "9s", "2h"],
    "PUNCTUAL_BEAT_LEASE": [*DURATION, "0s", "2m"],
    "PUNCTUAL_DISPATCH_LEASE": [*DURATION, "0s", "2m"],
    "PUNCTUAL_RUN_LEASE": [*DURATION, "1s", "11m", "6m"],
    "PUNCTUAL_ENQUEUE_TIMEOUT": [*DURATION, "9s", "2d", "10s"],
    "PUNCTUAL_ENGINE_WAIT": [*DURATION, "4s", "2d"],
    "PUNCTUAL_MISFIRE_GRACE": [*DURATION, "4s", "2d"],
    "PUNCTUAL_CATCHUP_RATE": [*NUMBER, "0", "10001"],
    "PUNCTUAL_CATCHUP_ACTIVE": [*NUMBER, "0", "10001"],
    "PUNCTUAL_RETENTION": [*DURATION, "0s", "3661d"],
    "PUNCTUAL_PARTITIONS_AHEAD": [*NUMBER, "0", "91"],
    "PUNCTUAL_RUNTIME": ["Kubernetes", "k8s", "Docker", "podman", "docker,process", "1"],
    "PUNCTUAL_WORKER_SLOTS": [*NUMBER, "0", "1001"],
    "PUNCTUAL_WORKER_QUEUES": ["Runs", "a b", "maintenance", "runs.high", "punctual.recorder", "-x", "é"],
    "PUNCTUAL_WORKER_CPUS": ["abc", "-1", "0", "1e3", "٣", "inf", "nan", "4097", "1,5"],
    "PUNCTUAL_WORKER_MEMORY_BYTES": [*NUMBER, "0", "1GiB"],
    "PUNCTUAL_LOG_DIR": FOLDER,
    "PUNCTUAL_LOG_FOLLOWERS": [*NUMBER, "1001"],
    "PUNCTUAL_LOG_ARCHIVE": [
        *FOLDER,
        "s3://",
        "s3://A",
        "s3://b/",
        "s3:///x",
        "s3://bucket/a b",
        "gs://bucket",
        "s3://bucket?x=1",
    ],
    "PUNCTUAL_LOG_LIVE_BYTES": [*NUMBER[:0], "-1", "x", "1.5", "64MiB", "67108865"],
    "PUNCTUAL_LOG_LIMIT_BYTES": [*NUMBER, "0", "64MiB"],
    "PUNCTUAL_RUN_ENV": ["a b", "A=1", "1A", "A;B", "A,B C", "é", "PUNCTUAL_SECRET_A"],
    "PUNCTUAL_PROCESS_PATH": ["bin", "/bin:bin", "/bin::/usr/bin", ":", "./x", "~/bin"],
    "PUNCTUAL_PROCESS_WORKDIR": FOLDER,
    "PUNCTUAL_KUBERNETES_CONTEXT": ["a b", "ä", "x" * 254, "a\tb", "a\nb"],
    "PUNCTUAL_KUBERNETES_NAMESPACE": ["A", "a_b", "-a", "a-", "a.b", "x" * 64],
    "PUNCTUAL_KUBERNETES_TEAM_NAMESPACES": ["a", "a=", "=b", "a=B", "a=b=c", "a=b,a=c"],
    "PUNCTUAL_KUBERNETES_KEEP": [*DURATION, "4m", "31d"],
    "PUNCTUAL_KUBERNETES_UNSCHEDULABLE": [*DURATION, "2d"],
    "PUNCTUAL_KUBERNETES_IMAGE_PULL": [*DURATION, "2d"],
    "PUNCTUAL_KUBERNETES_NODE_LOST": [*DURATION, "2d"],
    "PUNCTUAL_KUBERNETES_NON_ROOT": FLAG,
    "PUNCTUAL_IMAGE_PYTHON": IMAGE,
    "PUNCTUAL_IMAGE_SCRIPT": IMAGE,
    "PUNCTUAL_IMAGE_SQL": IMAGE,
    "PUNCTUAL_IMAGES_BYTES": [*NUMBER, "0", "20GiB"],
    "PUNCTUAL_MEMORY_BYTES": [*NUMBER, "0", "1GiB"],
    "PUNCTUAL_START_TIMEOUT": [*DURATION, "0s", "2d"],
    "PUNCTUAL_GRACE": [*DURATION, "2h"],
    "PUNCTUAL_SECRETS_DIR": FOLDER,
    "PUNCTUAL_ALIVE_WITHIN": [*DURATION, "1s", "6m"],
    "PUNCTUAL_ALIVE_FILE": ["/", "/tmp", "/nowhere/alive", "/dev/null/alive", "/etc/passwd/alive"],
    "PUNCTUAL_ALLOW_IMAGES": PATTERNS,
    "PUNCTUAL_ALLOW_SECRETS": PATTERNS,
    "PUNCTUAL_ALLOW_VOLUMES": [*PATTERNS, "data/*", "hostPath:/x", "claim:", "/a/../b", "/a//b"],
    "PUNCTUAL_ALLOW_NETWORKS": PATTERNS,
    "PUNCTUAL_ALLOW_USERS": PATTERNS,
    "PUNCTUAL_ALLOW_SERVICE_ACCOUNTS": PATTERNS,
    "PUNCTUAL_ALLOW_PULL_SECRETS": PATTERNS,
    "PUNCTUAL_ALLOW_POD_TEMPLATE": PATTERNS,
    "PUNCTUAL_ALLOW_CPUS": [*NUMBER, "0", "1025"],
    "PUNCTUAL_ALLOW_MEMORY_BYTES": [*NUMBER, "0", "1GiB"],
    "PUNCTUAL_ALLOW_EPHEMERAL_BYTES": [*NUMBER, "0", "1GiB"],
    "PUNCTUAL_ALLOW_GPUS": [*NUMBER, "1025"],
    "PUNCTUAL_ALLOW_PIDS": [*NUMBER, "0", "1", "1GiB"],
    "PUNCTUAL_LOG_LEVEL": ["LOUD", "info", "10", "INFO,DEBUG", "CRITICALLY"],
}
NO_NONSENSE = {"SECRET_KEY"}  # any text is one
SENSE: dict[str, list[str]] = {
    "DATABASE_URL": [
        "postgresql://",
        "postgres://u:p@h1:1,h2/x",
        "postgresql:///x?host=%2Ftmp&sslmode=disable",
    ],
    "REDIS_URL": [
        "redis://h",
        "rediss://u:p@h:1/2?ssl_cert_reqs=none",
        "unix:///tmp/s.sock?db=1",
        "redis+sentinel://u:p@a:1,b,[::1]:3/jobs/2?sentinel_password=x",
        "rediss+cluster://a,b:7001",
    ],
    "BROKER_URL": [
        "amqp://u:p@h:1//",
        "amqps://h/%2Fx",
        "redis://h/3",
        "redis+socket:///tmp/s?virtual_host=1",
        "amqp://u:p@a:1,b//",
        "redis+sentinel://:p@a,b/jobs/1",
    ],
    "ALLOWED_HOSTS": ["*", ".example.org, a-b.c", "[::1]", "10.0.0.1", "web_1"],
    "CSRF_TRUSTED_ORIGINS": ["https://*.example.org", "http://h:8000,https://[::1]:1"],
    "PUNCTUAL_CORS_ORIGINS": ["https://a.example.org, http://localhost:3000"],
    "PUNCTUAL_HOME": ["/nowhere-yet/below", "~/x", "relative"],
    "PUNCTUAL_NAMESPACE": ["team-a.jobs_1", "a", "x" * 63],
    "PUNCTUAL_LOG_ARCHIVE": ["/nowhere-yet/logs", "s3://my-bucket.1", "s3://bucket/team/logs/"],
    "PUNCTUAL_LOG_LIVE_BYTES": ["0", "1048576"],
    "PUNCTUAL_RUN_ENV": ["A", " A , _b1,, "],
    "PUNCTUAL_PROCESS_PATH": ["/bin", "/usr/bin:/bin"],
    "PUNCTUAL_PROCESS_WORKDIR": ["/", "/nowhere-yet"],
    "PUNCTUAL_ALIVE_FILE": ["/tmp/alive", "~/alive"],
    "PUNCTUAL_IMAGE_PYTHON": [
        "python",
        "registry.example.org:5000/team/python-3.12_x:3.12-slim",
        "python@sha256:" + "0" * 64,
        "localhost/A".lower(),
    ],
    "PUNCTUAL_ENQUEUE_TIMEOUT": ["11s", "1d"],
    "PUNCTUAL_ALLOW_IMAGES": ["*", "python:3.*, registry.example.org:5000/{team}/*", "x@sha256:*"],
    "PUNCTUAL_ALLOW_VOLUMES": ["/*", "/data/{team}/*,claim:{team}-*", "volume:v?"],
    "PUNCTUAL_ALLOW_POD_TEMPLATE": ["spec.hostAliases.*"],
    "PUNCTUAL_KUBERNETES_CONTEXT": ["arn:aws:eks:eu-1:1:cluster/x", "user@cluster"],
    "PUNCTUAL_KUBERNETES_TEAM_NAMESPACES": ["sales=sales-runs", "The Sales Team = a, data=b"],
    "PUNCTUAL_WORKER_QUEUES": ["etl", " runs , etl_2,, etl_2,"],
    "PUNCTUAL_WORKER_CPUS": ["0.5", "16"],
}
PAIRS = [(name, value) for name, values in NONSENSE.items() for value in values]


@pytest.fixture
def settings_with(monkeypatch: pytest.MonkeyPatch) -> Any:
    """settings.py, read as a process reads it whose environment has this."""

    def read(name: str, value: str) -> dict[str, Any]:
        monkeypatch.setenv(name, value)
        return runpy.run_path(str(ROOT / "scheduler_project/settings.py"))

    return read


def test_the_table_has_every_variable() -> None:
    assert NONSENSE.keys() | NO_NONSENSE == {*readings(), "PUNCTUAL_HOME"}
    assert min(len(values) for values in NONSENSE.values()) >= 5


@pytest.mark.parametrize(("name", "value"), PAIRS, ids=[f"{name}={value[:20]!a}" for name, value in PAIRS])
def test_nonsense_is_refused_in_one_line(settings_with: Any, name: str, value: str) -> None:
    with pytest.raises(Refused) as refused:
        settings_with(name, value)
    line = str(refused.value)
    assert name in line
    assert line.isprintable()
    assert len(line) < 600
    assert any(words in line for words in ("Allowed: ", "Make it ", "for example", "between"))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in SENSE for value in SENSE[name]])
def test_what_makes_sense_is_read(settings_with: Any, name: str, value: str) -> None:
    settings_with(name, value)


@pytest.mark.parametrize(
    "url", ["postgresql://u:sec%ret@h/x", "postgresql://u:secret@[::1", "postgresql://u:secret@h:x/"]
)
def test_a_refused_database_url_never_shows_its_password(settings_with: Any, url: str) -> None:
    with pytest.raises(Refused) as refused:
        settings_with("DATABASE_URL", url)
    assert "sec" not in str(refused.value)


@pytest.mark.parametrize(
    ("file", "content"), [("services.json", b"{"), ("services.json", b"\xff"), ("secret_key", b"\xff")]
)
def test_an_unusable_file_in_the_home_folder_is_named(
    settings_with: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, content: bytes
) -> None:
    (tmp_path / file).write_bytes(content)
    monkeypatch.delenv("SECRET_KEY")
    with pytest.raises(Refused, match=file):
        settings_with("PUNCTUAL_HOME", str(tmp_path))
