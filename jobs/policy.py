"""Who may do what with jobs; the rules are in executions/policy.py, since runs obey them too."""

from __future__ import annotations

from executions.policy import Forbidden, User, require_member, sees_all, team_ids, teams_seen_by

__all__ = ["Forbidden", "User", "require_member", "sees_all", "team_ids", "teams_seen_by"]
