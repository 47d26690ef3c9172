"""The worker: claims runs, watches their containers, reports through Celery signals.

    queue "runs" ─▶ consumer (subscribed only while a slot is free)
                       │ task_prerun: claim, JOB_STARTED, acknowledge
                       ▼
                    task body: container to its end
                       │ task_success / task_failure / task_revoked
                       ▼
                    JOB_COMPLETED, JOB_FAILED, JOB_LOST or JOB_CANCELLED

It has no database: all that it needs is in the message, all that it knows leaves as events.
"""
