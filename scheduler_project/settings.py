"""Every setting of Punctual. All that a deployment may change comes from the environment.

The table in README.md lists the variables; a test compares the two. Units are in the names.
Nothing set means embedded: the addresses are then those of the parts that
``manage.py standalone`` last started in PUNCTUAL_HOME.
"""

from __future__ import annotations

import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import ProgrammingError

from executions.bus.topology import MAINTENANCE, RUNS, transport_options, work_queue
from scheduler_project.env import Environment, Refused, given_variables, integer_of, require_longest
from scheduler_project.home import embedded_addresses, stored_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
_given = given_variables(BASE_DIR / ".env", os.environ)
PUNCTUAL_HOME = Environment(_given).folder("PUNCTUAL_HOME", str(BASE_DIR / ".punctual"))
env = Environment({**embedded_addresses(PUNCTUAL_HOME), **_given})

# --- Parts -----------------------------------------------------------------------------------

DATABASE_URL = env.url("DATABASE_URL", "", ["postgresql", "postgres"])
REDIS_URL = env.url("REDIS_URL", "", ["redis", "rediss", "unix"])
BROKER_URL = env.url("BROKER_URL", "", ["pyamqp", "amqp", "amqps", "redis", "rediss", "redis+socket"])
if BROKER_URL.startswith("amqp://"):
    # Where librabbitmq can be imported, kombu takes it for amqp:// and publisher confirms are silently gone.
    BROKER_URL = "py" + BROKER_URL


# A connection that has gone silent is given up after some 20 s, by this side and (``options``) by PostgreSQL,
# which would otherwise keep the locks of a host that is gone for hours. What the URL says holds instead.
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "20000",
    "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2"
    " -c tcp_user_timeout=20000 -c lock_timeout=15s -c idle_in_transaction_session_timeout=30s",
}


def _database(url: str) -> dict[str, object]:
    """Django's form of a libpq URL; several hosts and every libpq parameter are passed through."""
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError as error:
        reason = str(error).partition('"')[0].strip(" :\n")  # what follows may hold the password
        raise Refused(f"DATABASE_URL: {reason}. Allowed: a libpq URL, postgresql://….") from None
    for port in filter(None, given.get("port", "").split(",")):
        integer_of("DATABASE_URL: the port", port, minimum=1, maximum=65535)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.pop("dbname", "punctual"),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", "" if url else str(PUNCTUAL_HOME / "postgresql")),
        "PORT": given.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**_PATIENCE, **given},
    }


DATABASES = {"default": _database(DATABASE_URL)}

# --- Web -------------------------------------------------------------------------------------

SECRET_KEY = env.text("SECRET_KEY") or stored_secret_key(PUNCTUAL_HOME)
DEBUG = env.flag("DEBUG")
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
PUNCTUAL_PORT = env.integer("PUNCTUAL_PORT", 8000, minimum=1, maximum=65535)
_HTTPS = env.flag("PUNCTUAL_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

# --- The scheduler ---------------------------------------------------------------------------

PUNCTUAL_NAMESPACE = env.word("PUNCTUAL_NAMESPACE", "punctual")
PUNCTUAL_SHARDS = env.integer("PUNCTUAL_SHARDS", 16, minimum=1, maximum=4096)
PUNCTUAL_WINDOW = env.duration("PUNCTUAL_WINDOW", "5m", minimum="10s", maximum="1h")
PUNCTUAL_BEAT_LEASE = env.duration("PUNCTUAL_BEAT_LEASE", "2s", minimum="500ms", maximum="1m")
PUNCTUAL_DISPATCH_LEASE = env.duration("PUNCTUAL_DISPATCH_LEASE", "5s", minimum="1s", maximum="1m")
PUNCTUAL_RUN_LEASE = env.duration("PUNCTUAL_RUN_LEASE", "10s", minimum="2s", maximum="10m")
PUNCTUAL_ENQUEUE_TIMEOUT = env.duration("PUNCTUAL_ENQUEUE_TIMEOUT", "5m", minimum="10s", maximum="1d")
require_longest(
    "PUNCTUAL_ENQUEUE_TIMEOUT",
    PUNCTUAL_ENQUEUE_TIMEOUT,
    # What is still on its way would be taken for lost; a claim forgotten before it is looked at again.
    {"PUNCTUAL_DISPATCH_LEASE": PUNCTUAL_DISPATCH_LEASE, "PUNCTUAL_RUN_LEASE": PUNCTUAL_RUN_LEASE},
    "runs would be started twice",
)
PUNCTUAL_MISFIRE_GRACE = env.duration("PUNCTUAL_MISFIRE_GRACE", "1m", minimum="5s", maximum="1d")
PUNCTUAL_CATCHUP_RATE = env.integer("PUNCTUAL_CATCHUP_RATE", 50, minimum=1, maximum=10_000)
PUNCTUAL_CATCHUP_ACTIVE = env.integer("PUNCTUAL_CATCHUP_ACTIVE", 4, minimum=1, maximum=10_000)
PUNCTUAL_RETENTION = env.duration("PUNCTUAL_RETENTION", "30d", minimum="1d")
PUNCTUAL_PARTITIONS_AHEAD = env.integer("PUNCTUAL_PARTITIONS_AHEAD", 7, minimum=1, maximum=90)

# --- Running ---------------------------------------------------------------------------------

PUNCTUAL_RUNTIME = env.choice("PUNCTUAL_RUNTIME", "docker", ["docker", "process"])
PUNCTUAL_LOG_DIR = env.folder("PUNCTUAL_LOG_DIR", str(PUNCTUAL_HOME / "logs"))
PUNCTUAL_LOG_LIMIT_BYTES = env.integer("PUNCTUAL_LOG_LIMIT_BYTES", 64 << 20, minimum=4096, maximum=1 << 40)
PUNCTUAL_RUN_ENV = env.names("PUNCTUAL_RUN_ENV")
PUNCTUAL_PROCESS_PATH = env.search_path("PUNCTUAL_PROCESS_PATH")
PUNCTUAL_PROCESS_WORKDIR = env.optional_folder("PUNCTUAL_PROCESS_WORKDIR")
PUNCTUAL_IMAGES = {
    "Python": env.image("PUNCTUAL_IMAGE_PYTHON", "python:3.12-slim"),
    "Script": env.image("PUNCTUAL_IMAGE_SCRIPT", "busybox:stable"),
    "SQL": env.image("PUNCTUAL_IMAGE_SQL", "postgres:17-alpine"),
}
PUNCTUAL_MEMORY_BYTES = env.integer("PUNCTUAL_MEMORY_BYTES", 1 << 30, minimum=6 << 20, maximum=1 << 50)
PUNCTUAL_START_TIMEOUT = env.duration("PUNCTUAL_START_TIMEOUT", "5m", minimum="1s", maximum="1d")
PUNCTUAL_GRACE = env.duration("PUNCTUAL_GRACE", "10s", maximum="1h")

# --- Django ----------------------------------------------------------------------------------

INSTALLED_APPS = [
    "scheduler_project.apps.PunctualConfig",
    "scheduler_project.apps.PunctualAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "django_celery_results",
    "executions.apps.ExecutionsConfig",
    "jobs.apps.JobsConfig",
    "beat.apps.BeatConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "scheduler_project.refusals.RefuseUnusableValues",
]
ROOT_URLCONF = "scheduler_project.urls"
WSGI_APPLICATION = "scheduler_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "scheduler_project.formats"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # The first one names the scheme of a 401; a session alone would make it a 403.
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "scheduler_project.problems.handle_exception",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

# --- Celery ----------------------------------------------------------------------------------
# Read by scheduler_project.celery. Run tasks ignore results: their state is the execution's row.

CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(BROKER_URL, PUNCTUAL_NAMESPACE)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
CELERY_TASK_QUEUES = [work_queue(RUNS)]  # what a worker without -Q consumes
CELERY_TASK_DEFAULT_QUEUE = RUNS
CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = "quorum"
CELERY_TASK_ROUTES = {
    "maintenance.*": {"queue": MAINTENANCE},
    "celery.backend_cleanup": {"queue": MAINTENANCE},
}
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_CONSUMER = "executions.worker.consumer:RunConsumer"
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = env.integer("PUNCTUAL_WORKER_SLOTS", 8, minimum=1, maximum=1000)
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
# Exclusive, the queue of a worker whose connection went silent would be locked against its next connection.
CELERY_CONTROL_QUEUE_EXCLUSIVE = False
CELERY_BEAT_SCHEDULER = "beat.scheduler:PunctualScheduler"
CELERY_BEAT_SCHEDULE = {
    "partitions": {"task": "maintenance.partitions", "schedule": 3600.0},
}
CELERY_TIMEZONE = TIME_ZONE

# --- Logs ------------------------------------------------------------------------------------

PUNCTUAL_LOG_LEVEL = env.choice("PUNCTUAL_LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"events": {"()": "scheduler_project.logs.EventFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
    "root": {"handlers": ["stderr"], "level": PUNCTUAL_LOG_LEVEL},
    "loggers": {
        # What Celery says of each task, the worker says of each run.
        name: {"level": "WARNING"}
        for name in ("amqp", "docker", "celery.worker.strategy", "celery.app.trace")
    },
}
