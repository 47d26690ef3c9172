from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from executions.planning import register_planner
        from jobs.planning import plan

        register_planner(plan)
