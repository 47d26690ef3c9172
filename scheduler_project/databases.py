"""Where PostgreSQL is, and how long it is waited for."""

from __future__ import annotations

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from scheduler_project.env import Refused, integer_of

# A connection that has gone silent is given up after some 20 s, by this side and (``options``) by PostgreSQL,
# which would otherwise keep the locks of a host that is gone for hours. A process that is stopped in a
# transaction loses it before those who wait for its locks give up. What the URL says holds instead.
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "20000",
    "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2"
    " -c tcp_user_timeout=20000 -c lock_timeout=15s -c idle_in_transaction_session_timeout=10s",
}


def database_of(url: str, *, embedded_in: str) -> dict[str, object]:
    """Django's form of a libpq URL; several hosts and every libpq parameter are passed through.

    ``embedded_in``: the folder of the socket where there is no URL. Refused, without its password, where
    libpq cannot read it.
    """
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
        "HOST": given.pop("host", "" if url else embedded_in),
        "PORT": given.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**_PATIENCE, **given},
    }
