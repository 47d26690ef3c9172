"""``manage.py standalone``: the whole system as one supervised process tree on embedded parts.

    manage.py standalone ──exec──▶ supervisor (no Django settings, no threads, no connections)
                                      ├── postgresql, valkey        (unless their addresses are given)
                                      ├── recorder, auditor, maintenance, worker, beat, web
                                      └── reporter                  (state changes, the demo)

The supervisor imports the big libraries once and forks every Python process from there:
their pages are shared and each is up in a fraction of a second. A forked process then sets
its own environment and reads the settings from it, exactly as the command it stands for.

What may fail, and what then:

* a process ends by itself: it is started again, with back-off, and a line says so;
* the supervisor is killed: the kernel ends its children (PR_SET_PDEATHSIG), and the next
  start ends whatever is left on record before it touches the data (leftovers.py);
* a start is interrupted while the database is being made: it is made under another name
  and renamed when complete.
"""
