"""The named queries of jobs/sql/."""

from __future__ import annotations

from scheduler_project.kernel.resources import read_queries

JOBS = read_queries("jobs.sql", "jobs.sql")
CATCHUPS = read_queries("jobs.sql", "catchups.sql")
