from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from executions.planning import register_planner
        from executions.retrying import register_retrier
        from jobs.planning import plan
        from jobs.retries import retry_run

        register_planner(plan)
        register_retrier(retry_run)
