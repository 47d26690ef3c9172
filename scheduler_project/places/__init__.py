"""Places of one's own in real services, for what must not touch the data that the settings name.

Tests, benchmarks and ``manage.py chaos`` start whole systems beside the one that may be live there: in a
database, a virtual host and a namespace that they make and remove again.
"""
