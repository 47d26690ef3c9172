"""Jobs that files declare: what is there is brought in line with what they say.

``manifests`` reads the files, ``comparing`` says what differs from the database, ``applying`` does it, all
of it or nothing. A crontab that is imported takes the same way.
"""
