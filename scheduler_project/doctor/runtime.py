"""Where runs run: whether the engine answers, and whether it has or may have the images of the jobs."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db.utils import Error as DatabaseError

from containers.allowed import check as check_allowed
from containers.docker import DockerRuntime
from containers.options import merged, read_options
from containers.runtime import Runtime, RuntimeUnavailable
from executions.allowance import allowed_here
from executions.presence import present_workers
from executions.store import StoreUnavailable, default_store
from executions.worker.process import configured_runtime
from jobs.models import Job
from scheduler_project.doctor.findings import Finding, away, failure, ok, unknown, warning
from scheduler_project.kernel.errors import InvalidFields
from scheduler_project.operating.words import counted

MOST_JOBS = 5_000
MOST_NAMED = 5


def check_runtime() -> Iterator[Finding]:
    runtime = configured_runtime()
    try:
        yield from _on_engine(runtime)
    finally:
        runtime.close()
    yield from _on_allowed()


def _on_engine(runtime: Runtime) -> Iterator[Finding]:
    name = settings.PUNCTUAL_RUNTIME
    try:
        runtime.ping()
    except RuntimeUnavailable as error:
        yield _unreachable(name, error.message)
        return
    yield ok("reachable", f"The {name} runtime answers.")
    if not isinstance(runtime, DockerRuntime):
        return
    wanted = _images()
    missing = sorted(image for image in wanted if not runtime.has_image(image))
    if missing:
        told = f"{counted(len(missing), 'image')} of {len(wanted)} not here yet: {_named(missing)}."
        yield warning(
            "images", told, "They are pulled by the first run that needs them; 'docker pull' does it now."
        )
    else:
        yield ok("images", f"All {counted(len(wanted), 'image')} that jobs need are here.")


def _unreachable(name: str, message: str) -> Finding:
    """Only workers need it: where some are alive, it is their engine that counts, and not this host's."""
    try:
        workers = len(present_workers(default_store()))
    except StoreUnavailable:
        workers = 0
    if workers:
        told = (
            f"The {name} runtime does not answer here ({message}); {counted(workers, 'worker')} elsewhere do."
        )
        return warning("reachable", told, "Nothing, if this host is to run nothing; else start the engine.")
    return away(
        message, "Start the engine, or set DOCKER_HOST, KUBECONFIG or PUNCTUAL_RUNTIME to where it is."
    )


def _images() -> set[str]:
    """Of the jobs that are there, and of the types that they are of."""
    try:
        rows = list(
            Job.objects.filter(archived_at=None)
            .values_list("image", "task__image", "type")
            .distinct()[:MOST_JOBS]
        )
    except DatabaseError:
        return set(settings.PUNCTUAL_IMAGES.values())
    default = settings.PUNCTUAL_IMAGES
    return {image for own, tasks, kind in rows if (image := own or tasks or default.get(kind, ""))}


def _on_allowed() -> Iterator[Finding]:
    """Whether the policy of this deployment still lets the jobs have what they ask for."""
    try:
        jobs = list(Job.objects.filter(archived_at=None).select_related("owner", "task")[:MOST_JOBS])
    except DatabaseError:
        yield unknown("allowed", "Which jobs there are is not known.")
        return
    refused = [f"{job.owner.name}/{job.name}" for job in jobs if not _is_allowed(job)]
    if refused:
        told = (
            f"{counted(len(refused), 'job')} ask for what PUNCTUAL_ALLOW_… does not allow: {_named(refused)}."
        )
        yield failure("allowed", told, "Change these jobs or the list; their runs fail until then.")
    else:
        yield ok("allowed", f"{counted(len(jobs), 'job')}, all within PUNCTUAL_ALLOW_….")


def _is_allowed(job: Job) -> bool:
    task = job.task
    try:
        options = read_options(merged(task.container if task else {}, job.container))
        check_allowed(job.image or (task.image if task else ""), options, allowed_here(), job.owner.name)
    except InvalidFields:
        return False
    return True


def _named(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
