"""The named queries of executions/sql/."""

from __future__ import annotations

from scheduler_project.kernel.resources import read_queries

PACKAGE = "executions.sql"
TRANSITIONS = read_queries(PACKAGE, "transitions.sql")
HISTORY = read_queries(PACKAGE, "history.sql")
REDIRECTION = read_queries(PACKAGE, "redirection.sql")
PARTITIONS = read_queries(PACKAGE, "partitions.sql")
