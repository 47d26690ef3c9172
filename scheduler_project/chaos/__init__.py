"""``manage.py chaos``: whether anything is lost while processes are killed and connections cut.

    plan.py (pure, from a seed) ──▶ load: which job fires when      faults: what happens to whom, when
                                          │                            │
    system.py   processes ──▶ proxies.py ──▶ PostgreSQL, Redis, broker (places of their own)
                    │
                    └─ runs ──▶ ledger.py: lines that the runs themselves append
                                          │
    verdict.py  what should have run, beside what did: from the ledger, then from PostgreSQL

The system is real: several beats, workers, recorders and auditors as a deployment starts them, over the
servers that the settings name but in a database, a virtual host and a namespace made for it. What is
counted comes from the plan and from the ledger; Punctual is asked last, whether it knows what happened.
"""
