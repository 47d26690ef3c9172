"""REST of executions, and what all of REST shares (base, parameters, parsing)."""
