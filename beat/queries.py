"""The named queries of beat/sql/."""

from __future__ import annotations

from scheduler_project.kernel.resources import read_queries

SWEEPS = read_queries("beat.sql", "sweeps.sql")
