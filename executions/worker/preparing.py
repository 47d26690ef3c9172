"""What must be settled before an attempt is launched: its templates, what it may do, its secrets.

The policy of this worker counts, whatever the one was of the process that saved the job. Secrets are
found last, and anew in each try, so that their values lie nowhere while an engine is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from containers.allowed import check
from containers.logs import LogStore, LogWriter
from containers.options import ContainerOptions, read_options
from containers.outcome import Reason
from containers.secrets import SecretMissing, SecretSource, resolve
from containers.spec import LABEL_OWNER, ContainerSpec
from containers.supervise import note
from executions.entries import Flag
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults, container_spec
from executions.worker.rendering import Rendered, TemplateRefused, render
from scheduler_project.kernel.errors import InvalidFields, InvalidValue, PermanentError

logger = logging.getLogger(__name__)

TEMPLATE_REFUSED = "template_error"
MOST_READ = 1000
UNRENDERED = Rendered("", {}, {})


class Unstartable(PermanentError):
    """No attempt of this run can be started by this deployment as it is; ``reason`` is the run's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Prepared:
    """``container`` is without its secrets; ``secret_env`` has their names by variable."""

    container: ContainerSpec
    secret_env: Mapping[str, str]

    def with_secrets(self, sources: Sequence[SecretSource]) -> ContainerSpec:
        """The whole. Raises SecretMissing, SecretsUnavailable."""
        team = self.container.labels.get(LABEL_OWNER, "")
        return replace(self.container, secrets=resolve(self.secret_env, sources, team))


def prepare(given: Assignment, defaults: RunDefaults) -> Prepared:
    """Raises Unstartable, with the reason ``template_error``, ``not_allowed`` or ``start_failed``."""
    options = _options(given)
    try:
        check(given.spec.image, options, defaults.allowed, given.spec.owner)
    except InvalidFields as error:
        raise Unstartable(str(Reason.NOT_ALLOWED), f"not allowed by this worker: {error.message}") from error
    try:
        rendered = render(given.spec, given.execution_id, given.scheduled_for, given.attempt)
        return Prepared(container_spec(given, rendered, options, defaults), options.secret_env)
    except (TemplateRefused, InvalidValue) as error:
        raise Unstartable(TEMPLATE_REFUSED, error.message) from error


def prepare_to_attach(given: Assignment, defaults: RunDefaults) -> Prepared:
    """For a container that is there: its words and variables are, too, and it was allowed. Unstartable: its
    options cannot be read by this worker."""
    options = _options(given)
    return Prepared(container_spec(given, UNRENDERED, options, defaults), options.secret_env)


def _options(given: Assignment) -> ContainerOptions:
    """Read once for all runs of a RunSpec, whose id is that of its content."""
    if (found := _read.get(given.spec_id)) is not None:
        return found
    try:
        options = read_options(given.spec.container)
    except InvalidFields as error:
        raise Unstartable(str(Reason.START_FAILED), error.message) from error
    if len(_read) >= MOST_READ:
        _read.clear()
    _read[given.spec_id] = options
    return options


_read: dict[UUID, ContainerOptions] = {}


def with_secrets(
    given: Assignment, prepared: Prepared, sources: Sequence[SecretSource], logs: LogStore
) -> tuple[ContainerSpec, LogWriter]:
    """The whole container, and a log that hides its secrets. SecretMissing where it has not begun.

    What runs already is watched all the same, to its end and its time limit; but nobody could mask what
    it says, so that is withheld. Raises SecretsUnavailable.
    """
    try:
        container = prepared.with_secrets(sources)
    except SecretMissing as error:
        if Flag.REATTACH not in given.flags:
            raise
        who = {"execution": given.execution_id, "attempt": given.attempt, "job": given.spec.job_name}
        logger.error("output_withheld", extra={**who, "error": error.message})
        log = logs.withholding(given.execution_id, given.attempt)
        note(log, f"the output from here on is withheld, since it could not be masked: {error.message}")
        return prepared.container, log
    return container, logs.writer(given.execution_id, given.attempt, container.hidden())
