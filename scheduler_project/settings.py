"""Every setting of Punctual. All that a deployment may change comes from the environment.

The table in README.md lists the variables; a test compares the two. Units are in the names.
Nothing set means embedded: the addresses are then those of the parts that
``manage.py standalone`` last started in PUNCTUAL_HOME.
"""

from __future__ import annotations

import os
from pathlib import Path

from corsheaders.defaults import default_headers

from executions.bus.topology import (
    HEARTBEAT_S,
    MAINTENANCE,
    RUNS,
    kombu_url,
    transport_options,
    work_queue,
)
from scheduler_project.admin_look import UNFOLD as _UNFOLD
from scheduler_project.databases import database_of
from scheduler_project.env import Environment, given_variables, require_longest
from scheduler_project.home import embedded_addresses, stored_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
_given = given_variables(BASE_DIR / ".env", os.environ)
PUNCTUAL_HOME = Environment(_given).folder("PUNCTUAL_HOME", str(BASE_DIR / ".punctual"))
env = Environment({**embedded_addresses(PUNCTUAL_HOME), **_given})

# --- Parts -----------------------------------------------------------------------------------

DATABASE_URL = env.url("DATABASE_URL", "", ["postgresql", "postgres"])
REDIS_URL = env.url(
    "REDIS_URL",
    "",
    ["redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"],
)
_broker_url = env.url(
    "BROKER_URL", "", ["pyamqp", "amqp", "amqps", "redis", "rediss", "redis+socket", "redis+sentinel"]
)
BROKER_URL = kombu_url(_broker_url)


DATABASES = {"default": database_of(DATABASE_URL, embedded_in=str(PUNCTUAL_HOME / "postgresql"))}

# --- Web -------------------------------------------------------------------------------------

SECRET_KEY = env.text("SECRET_KEY") or stored_secret_key(PUNCTUAL_HOME)
DEBUG = env.flag("DEBUG")
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
PUNCTUAL_PORT = env.integer("PUNCTUAL_PORT", 8000, minimum=1, maximum=65535)
PUNCTUAL_PROXIES = env.integer("PUNCTUAL_PROXIES", 0, minimum=0, maximum=10)
PUNCTUAL_HTTPS = env.flag("PUNCTUAL_HTTPS")
PUNCTUAL_HSTS = env.duration("PUNCTUAL_HSTS", "365d")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = PUNCTUAL_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PUNCTUAL_HTTPS else None
SECURE_REDIRECT_EXEMPT = ["^healthz(/live|/ready)?$"]  # asked from within, past the proxy
SECURE_HSTS_SECONDS = int(PUNCTUAL_HSTS.total_seconds()) if PUNCTUAL_HTTPS else 0
# What HSTS says of other hosts below this name, and in lists that browsers ship, is for the domain's owner.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
LOGIN_REDIRECT_URL = "/admin/"
CONTENT_SECURITY_POLICY = {  # what single pages need beyond it: scheduler_project/web/content.py
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "worker-src": ["'self'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

AUDITLOG_LOGENTRY_MODEL = "trail.ChangeRecord"
AUDITLOG_STORE_JSON_CHANGES = True
AUDITLOG_USE_FK_STRING_REPRESENTATION = True
AUDITLOG_MASK_CALLABLE = "access.masking.hidden"
AUDITLOG_INCLUDE_TRACKING_MODELS = [  # jobs and runs: access/audit.py
    {
        "model": "auth.User",
        "exclude_fields": ["last_login", "date_joined"],
        "mask_fields": ["password"],
        "m2m_fields": ["groups", "user_permissions"],
    },
    {"model": "auth.Group", "m2m_fields": ["permissions"]},
    {"model": "access.ApiToken", "exclude_fields": ["digest", "last_used_at"]},
    {"model": "jobs.Pool"},
    {"model": "jobs.Task", "exclude_fields": ["env", "parameters", "container"]},
]
MIGRATION_MODULES = {"auditlog": None}  # its own table, which ours takes the place of, is not made

PUNCTUAL_CORS_ORIGINS = env.exact_origins("PUNCTUAL_CORS_ORIGINS")
CORS_ALLOWED_ORIGINS = PUNCTUAL_CORS_ORIGINS
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = [*default_headers, "idempotency-key", "if-match", "if-none-match", "last-event-id"]
CORS_EXPOSE_HEADERS = ["ETag", "Location", "Punctual-Attempt", "Retry-After"]

PUNCTUAL_API_RATE = env.integer("PUNCTUAL_API_RATE", 600, minimum=0, maximum=1_000_000)
PUNCTUAL_API_RATE_ANONYMOUS = env.integer("PUNCTUAL_API_RATE_ANONYMOUS", 60, minimum=0, maximum=1_000_000)

PUNCTUAL_LOGIN_RATE = env.integer("PUNCTUAL_LOGIN_RATE", 30, minimum=0, maximum=1_000_000)
PUNCTUAL_LOGIN_FAILURES = env.integer("PUNCTUAL_LOGIN_FAILURES", 5, minimum=1, maximum=1000)
PUNCTUAL_LOGIN_LOCKOUT = env.duration("PUNCTUAL_LOGIN_LOCKOUT", "15m", minimum="1s", maximum="30d")
AXES_FAILURE_LIMIT = PUNCTUAL_LOGIN_FAILURES
AXES_COOLOFF_TIME = PUNCTUAL_LOGIN_LOCKOUT
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # trying on does not make it longer
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "scheduler_project.web.addresses.client_address"
AXES_LOCKOUT_CALLABLE = "scheduler_project.web.lockout.locked_out"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

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
PUNCTUAL_ENGINE_WAIT = env.duration("PUNCTUAL_ENGINE_WAIT", "2m", minimum="5s", maximum="1d")
PUNCTUAL_MISFIRE_GRACE = env.duration("PUNCTUAL_MISFIRE_GRACE", "1m", minimum="5s", maximum="1d")
PUNCTUAL_CATCHUP_RATE = env.integer("PUNCTUAL_CATCHUP_RATE", 50, minimum=1, maximum=10_000)
PUNCTUAL_CATCHUP_ACTIVE = env.integer("PUNCTUAL_CATCHUP_ACTIVE", 4, minimum=1, maximum=10_000)
PUNCTUAL_RETENTION = env.duration("PUNCTUAL_RETENTION", "30d", minimum="1d")
PUNCTUAL_PARTITIONS_AHEAD = env.integer("PUNCTUAL_PARTITIONS_AHEAD", 7, minimum=1, maximum=90)

# --- Running ---------------------------------------------------------------------------------

PUNCTUAL_RUNTIME = env.choice("PUNCTUAL_RUNTIME", "docker", ["docker", "kubernetes", "process"])
PUNCTUAL_WORKER_QUEUES = env.run_queues("PUNCTUAL_WORKER_QUEUES", "runs")
PUNCTUAL_WORKER_CPUS = env.optional_number("PUNCTUAL_WORKER_CPUS", minimum=0.1, maximum=4096)
PUNCTUAL_WORKER_MEMORY_BYTES = env.optional_integer(
    "PUNCTUAL_WORKER_MEMORY_BYTES", minimum=6 << 20, maximum=1 << 50
)
PUNCTUAL_LOG_DIR = env.folder("PUNCTUAL_LOG_DIR", str(PUNCTUAL_HOME / "logs"))
PUNCTUAL_LOG_ARCHIVE = env.log_storage("PUNCTUAL_LOG_ARCHIVE", str(PUNCTUAL_LOG_DIR / "archive"))
PUNCTUAL_LOG_LIVE_BYTES = env.integer("PUNCTUAL_LOG_LIVE_BYTES", 256 << 10, minimum=0, maximum=64 << 20)
PUNCTUAL_LOG_LIMIT_BYTES = env.integer("PUNCTUAL_LOG_LIMIT_BYTES", 64 << 20, minimum=4096, maximum=1 << 40)
PUNCTUAL_LOG_FOLLOWERS = env.integer("PUNCTUAL_LOG_FOLLOWERS", 32, minimum=0, maximum=1000)
PUNCTUAL_RUN_ENV = env.names("PUNCTUAL_RUN_ENV")
PUNCTUAL_PROCESS_PATH = env.search_path("PUNCTUAL_PROCESS_PATH")
PUNCTUAL_PROCESS_WORKDIR = env.optional_folder("PUNCTUAL_PROCESS_WORKDIR")
PUNCTUAL_KUBERNETES_CONTEXT = env.context("PUNCTUAL_KUBERNETES_CONTEXT")
PUNCTUAL_KUBERNETES_NAMESPACE = env.namespace("PUNCTUAL_KUBERNETES_NAMESPACE", "punctual-runs")
PUNCTUAL_KUBERNETES_TEAM_NAMESPACES = env.team_namespaces("PUNCTUAL_KUBERNETES_TEAM_NAMESPACES")
PUNCTUAL_KUBERNETES_KEEP = env.duration("PUNCTUAL_KUBERNETES_KEEP", "1d", minimum="5m", maximum="30d")
PUNCTUAL_KUBERNETES_UNSCHEDULABLE = env.duration("PUNCTUAL_KUBERNETES_UNSCHEDULABLE", "5m", maximum="1d")
PUNCTUAL_KUBERNETES_IMAGE_PULL = env.duration("PUNCTUAL_KUBERNETES_IMAGE_PULL", "1m", maximum="1d")
PUNCTUAL_KUBERNETES_NODE_LOST = env.duration("PUNCTUAL_KUBERNETES_NODE_LOST", "1m", maximum="1d")
PUNCTUAL_KUBERNETES_NON_ROOT = env.flag("PUNCTUAL_KUBERNETES_NON_ROOT")
PUNCTUAL_IMAGES = {
    "Python": env.image("PUNCTUAL_IMAGE_PYTHON", "python:3.12-slim"),
    "Script": env.image("PUNCTUAL_IMAGE_SCRIPT", "busybox:stable"),
    "SQL": env.image("PUNCTUAL_IMAGE_SQL", "postgres:17-alpine"),
}
PUNCTUAL_IMAGES_BYTES = env.integer("PUNCTUAL_IMAGES_BYTES", 1 << 34, minimum=1 << 20, maximum=1 << 50)
PUNCTUAL_MEMORY_BYTES = env.integer("PUNCTUAL_MEMORY_BYTES", 1 << 30, minimum=6 << 20, maximum=1 << 50)
PUNCTUAL_START_TIMEOUT = env.duration("PUNCTUAL_START_TIMEOUT", "5m", minimum="1s", maximum="1d")
PUNCTUAL_GRACE = env.duration("PUNCTUAL_GRACE", "10s", maximum="1h")
PUNCTUAL_SECRETS_DIR = env.optional_folder("PUNCTUAL_SECRETS_DIR")

# --- What jobs may do with their containers (containers/allowed.py) -----------------------------
# Read where jobs are saved and by workers, which need not have the same.

PUNCTUAL_ALLOW_IMAGES = env.patterns("PUNCTUAL_ALLOW_IMAGES", "*")
PUNCTUAL_ALLOW_SECRETS = env.patterns("PUNCTUAL_ALLOW_SECRETS", "{team}/*")
PUNCTUAL_ALLOW_VOLUMES = env.volume_patterns("PUNCTUAL_ALLOW_VOLUMES")
PUNCTUAL_ALLOW_NETWORKS = env.patterns("PUNCTUAL_ALLOW_NETWORKS")
PUNCTUAL_ALLOW_USERS = env.patterns("PUNCTUAL_ALLOW_USERS", "*")
PUNCTUAL_ALLOW_SERVICE_ACCOUNTS = env.patterns("PUNCTUAL_ALLOW_SERVICE_ACCOUNTS")
PUNCTUAL_ALLOW_PULL_SECRETS = env.patterns("PUNCTUAL_ALLOW_PULL_SECRETS")
PUNCTUAL_ALLOW_POD_TEMPLATE = env.patterns("PUNCTUAL_ALLOW_POD_TEMPLATE")
PUNCTUAL_ALLOW_CPUS = env.optional_integer("PUNCTUAL_ALLOW_CPUS", minimum=1, maximum=1024)
PUNCTUAL_ALLOW_MEMORY_BYTES = env.optional_integer(
    "PUNCTUAL_ALLOW_MEMORY_BYTES", minimum=6 << 20, maximum=1 << 50
)
PUNCTUAL_ALLOW_EPHEMERAL_BYTES = env.optional_integer(
    "PUNCTUAL_ALLOW_EPHEMERAL_BYTES", minimum=1, maximum=1 << 50
)
PUNCTUAL_ALLOW_GPUS = env.integer("PUNCTUAL_ALLOW_GPUS", 0, minimum=0, maximum=1024)
PUNCTUAL_ALLOW_PIDS = env.integer("PUNCTUAL_ALLOW_PIDS", 4096, minimum=2, maximum=4_194_304)

# --- Django ----------------------------------------------------------------------------------

INSTALLED_APPS = [
    "scheduler_project.apps.PunctualConfig",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "scheduler_project.apps.PunctualAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_results",
    "axes",
    "corsheaders",
    "csp",
    "auditlog",
    "access.apps.AccessConfig",
    "access.trail.apps.TrailConfig",
    "executions.apps.ExecutionsConfig",
    "executions.api.apps.RestConfig",
    "jobs.apps.JobsConfig",
    "beat.apps.BeatConfig",
]
MIDDLEWARE = [
    "scheduler_project.web.addresses.RealAddress",
    "django.middleware.security.SecurityMiddleware",
    "scheduler_project.web.content.ContentPolicy",
    "scheduler_project.web.health.Health",
    *(["corsheaders.middleware.CorsMiddleware"] if PUNCTUAL_CORS_ORIGINS else []),
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "scheduler_project.web.login_rate.LoginRate",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "access.acting.Acting",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "scheduler_project.refusals.RefuseUnusableValues",
    "axes.middleware.AxesMiddleware",  # the last, as it asks
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
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
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "logs": PUNCTUAL_LOG_ARCHIVE,
}
WHITENOISE_USE_FINDERS = True
UNFOLD = _UNFOLD
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # The first one names the scheme of a 401; a session alone would make it a 403.
        "access.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["executions.api.throttles.RequestRate"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "executions.api.openapi.RestSchema",
    "EXCEPTION_HANDLER": "scheduler_project.problems.handle_exception",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Punctual",
    "DESCRIPTION": "A distributed job scheduler: jobs, their runs, and what became of them. Times are UTC"
    " (RFC 3339); lengths of time are written `90s`, `5m`, `1h30m`, `250ms`. Errors are problem details"
    " (RFC 9457).",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SORT_OPERATION_PARAMETERS": False,
    "POSTPROCESSING_HOOKS": ["executions.api.openapi.complete"],
    "LICENSE": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}

# --- Celery ----------------------------------------------------------------------------------
# Read by scheduler_project.celery. Run tasks ignore results: their state is the execution's row.

CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(_broker_url, PUNCTUAL_NAMESPACE)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# RabbitMQ gives what a frozen worker holds to another after two to three of these; its own default is 60 s.
CELERY_BROKER_HEARTBEAT = HEARTBEAT_S
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
CELERY_TASK_QUEUES = [work_queue(name) for name in PUNCTUAL_WORKER_QUEUES]  # of a worker without -Q
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

PUNCTUAL_ALIVE_FILE = env.optional_file("PUNCTUAL_ALIVE_FILE")
PUNCTUAL_ALIVE_WITHIN = env.duration("PUNCTUAL_ALIVE_WITHIN", "8s", minimum="2s", maximum="5m")

# --- Logs ------------------------------------------------------------------------------------

PUNCTUAL_LOG_LEVEL = env.choice("PUNCTUAL_LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"events": {"()": "scheduler_project.logs.EventFormatter"}},
    "filters": {"refusals_in_short": {"()": "scheduler_project.logs.RefusalsInShort"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "events",
            "filters": ["refusals_in_short"],
        }
    },
    "root": {"handlers": ["stderr"], "level": PUNCTUAL_LOG_LEVEL},
    "loggers": {
        # What Celery says of each task, the worker says of each run.
        name: {"level": "WARNING"}
        for name in ("amqp", "axes", "docker", "celery.worker.strategy", "celery.app.trace")
    },
}
