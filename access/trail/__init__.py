"""The audit trail's table, an application of its own: access/audit.py writes and reads it."""
