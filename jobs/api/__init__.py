"""REST of jobs."""
