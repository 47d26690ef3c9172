"""Crontabs, read as cron reads them and turned into jobs (pure: no database, no clock).

``lines`` reads the file, ``settings`` its environment lines, ``commands`` what comes after the time;
``carrying`` says which job an entry becomes, and what of it cannot be carried over. The rules are
those of crontab(5) and of the sources of cronie (env.c, entry.c, do_command.c), which
descends from Vixie cron; where Debian's cron differs, that is said.
"""
