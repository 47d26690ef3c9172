"""The admin's forms: they collect texts; what is allowed is decided by definitions.py and services.py."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin import widgets
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from rest_framework.exceptions import ParseError

from containers.spec import LEAST_MEMORY_BYTES
from executions.api.parsing import read_object
from executions.policy import Forbidden, User, sees_all, team_ids
from jobs import services
from jobs.definitions import (
    JobDefinition,
    check_together,
    definition_body,
    read_definition,
    read_field,
)
from jobs.models import Job, MisfirePolicy, Overlap, Task, WorkType
from jobs.schedules import parse_schedule
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue

SCHEDULE_HELP = (
    "A cron expression (<code>0 2 * * *</code>), <code>now</code>, or an object: "
    '<code>{"cron": "0 2 * * *", "timezone": "Europe/Berlin"}</code>, '
    '<code>{"at": "2026-12-24T18:00:00Z"}</code>, <code>{"after": "5m"}</code>, '
    '<code>{"every": "10s"}</code>.'
)
TASK_FIELDS = {"name", "description", "type", "command", "image", "env", "parameters"}
LENGTH_HELP = "A number and a unit: ms, s, m, h, d or w. For example 90s, 5m or 1h30m."


def _not_an_object(error: ParseError | InvalidFields) -> ValidationError:
    """The same complaint as over REST, where it is the body's."""
    return ValidationError(str(error).replace("The body", "This text", 1))


class ObjectField(forms.CharField):
    """A JSON object as text, read like a REST body."""

    widget = widgets.AdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"})

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        if not text.strip():
            return {}
        try:
            return read_object(text.encode())
        except (ParseError, InvalidFields) as error:
            raise _not_an_object(error) from error

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else json.dumps(value or {}, indent=2, ensure_ascii=False)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True


class JobForm(forms.Form):
    """A job. The fields have the names of the REST body, so that its errors find their place."""

    name = forms.CharField(widget=widgets.AdminTextInputWidget)
    owner = forms.ModelChoiceField(
        Group.objects.none(), to_field_name="name", help_text="The team that owns the job: a group of yours."
    )
    description = forms.CharField(required=False, widget=widgets.AdminTextareaWidget(attrs={"rows": 2}))
    type = forms.ChoiceField(choices=WorkType.choices)
    command = forms.CharField(
        required=False,
        strip=False,
        widget=widgets.AdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="Python and Container: the words to start. Script: a text for sh. SQL: a text for psql.",
    )
    image = forms.CharField(
        required=False, widget=widgets.AdminTextInputWidget, help_text="Empty: the one set for the type."
    )
    schedule = forms.CharField(widget=widgets.AdminTextInputWidget, help_text=SCHEDULE_HELP)
    parameters = ObjectField(
        required=False,
        help_text="A JSON object. {{ ds }} and the like are filled in, here and in the command.",
    )
    env = ObjectField(required=False, label="Environment", help_text="A JSON object of names and texts.")
    retries = forms.IntegerField(initial=0, help_text="Further attempts after the first fails, at most.")
    retryDelay = forms.CharField(
        label="Retry delay", initial="5m", widget=widgets.AdminTextInputWidget, help_text=LENGTH_HELP
    )
    timeout = forms.CharField(
        required=False,
        widget=widgets.AdminTextInputWidget,
        help_text=f"From the start of the container; empty: none. {LENGTH_HELP}",
    )

    overlap = forms.ChoiceField(
        required=False,
        choices=Overlap.choices,
        initial=Overlap.FORBID,
        help_text="What becomes of a time that comes while a run has not ended.",
    )
    misfire = forms.ChoiceField(
        required=False,
        choices=MisfirePolicy.choices,
        initial=MisfirePolicy.LATEST,
        label="Late runs",
        help_text="Misfire policy: which of the times that passed, in an outage for example, are still run.",
    )
    misfireMaxAge = forms.CharField(
        label="Late runs: not older than",
        required=False,
        widget=widgets.AdminTextInputWidget,
        help_text=f"Empty: any age. {LENGTH_HELP}",
    )
    misfireMaxCount = forms.IntegerField(
        label="Late runs: at most", required=False, help_text="Empty: however many."
    )
    jitter = forms.CharField(
        required=False,
        initial="0s",
        widget=widgets.AdminTextInputWidget,
        help_text=f"Spreads jobs of one instant over this time; 0s: on the dot. {LENGTH_HELP}",
    )

    def __init__(self, *args: Any, user: User, job: Job | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **{"initial": None if job is None else _initial(job), **kwargs})
        self._user = user
        self._job = job
        teams = Group.objects.order_by("name")
        owner = self.fields["owner"]
        assert isinstance(owner, forms.ModelChoiceField)  # noqa: S101 -- for mypy
        owner.queryset = teams if sees_all(user) else teams.filter(id__in=team_ids(user))
        if not owner.queryset.exists():
            owner.help_text = "There is no team yet: add a group first, then the job."
        self.definition: JobDefinition | None = None

    def clean_owner(self) -> str:
        owner: Group = self.cleaned_data["owner"]
        return owner.name

    def clean_schedule(self) -> Any:
        text: str = self.cleaned_data["schedule"].strip()
        if not text.startswith("{"):
            return text
        try:
            return read_object(text.encode())
        except (ParseError, InvalidFields) as error:
            raise _not_an_object(error) from error

    def clean(self) -> None:
        """Reads the whole, so that all that is wrong is said at once, each field with its first error."""
        body = dict(self.cleaned_data)
        body["timeout"] = body.get("timeout") or None
        body["misfire"] = {
            "policy": body.get("misfire") or str(MisfirePolicy.LATEST),
            "maxAge": body.pop("misfireMaxAge", None) or None,
            "maxCount": body.pop("misfireMaxCount", None),
        }
        for name in ("overlap", "jitter"):  # left out: the default
            if not body.get(name):
                body.pop(name, None)
        try:
            self.definition = read_definition(body)
        except InvalidFields as error:
            self._add_errors(error)

    def save(self, now: datetime) -> Job | None:
        """The job, or None, and then the form has an error."""
        assert self.definition is not None  # noqa: S101 -- only for a valid form
        try:
            if self._job is None:
                return services.create_job(self.definition, self._user, now).job
            kept = replace(self.definition, managed_by=self._job.managed_by)
            return services.update_job(self._job, kept, self._user, now)
        except InvalidFields as error:
            self._add_errors(error)
        except Conflict as error:
            self.add_error("name", error.message)
        except Forbidden as error:
            self.add_error("owner", error.message)
        return None

    def _add_errors(self, error: InvalidFields) -> None:
        for name, texts in error.errors.items():
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, texts)


def _initial(job: Job) -> dict[str, Any]:
    """What the form shows of a job that is there."""
    body = definition_body(job)
    limits = {"misfireMaxAge": body["misfire"]["maxAge"], "misfireMaxCount": body["misfire"]["maxCount"]}
    return {**body, **limits, "misfire": job.misfire, "schedule": _schedule_as_written(job.schedule)}


def _schedule_as_written(stored: Any) -> str:
    """As short as can be: without what is the default; the expression alone where that says all."""
    if not isinstance(stored, dict):
        return json.dumps(stored, ensure_ascii=False)
    said = dict(stored)
    for key in stored:
        shorter = {name: value for name, value in said.items() if name != key}
        said = shorter if _means(shorter, stored) else said
    text = said.get("cron")
    return text if isinstance(text, str) and _means(text, stored) else json.dumps(said, ensure_ascii=False)


def _means(said: Any, stored: Any) -> bool:
    try:
        return bool(parse_schedule(said).to_json() == stored)
    except InvalidValue:
        return False


if TYPE_CHECKING:  # at run time the class takes no parameter
    _ModelForm = forms.ModelForm[Task]
else:
    _ModelForm = forms.ModelForm


class TaskForm(_ModelForm):
    """A task; each field is read like that of a job."""

    env = ObjectField(required=False, label="Environment", help_text="A JSON object of names and texts.")
    parameters = ObjectField(required=False, help_text="Default parameters, a JSON object.")
    memory_bytes = forms.IntegerField(
        required=False, min_value=LEAST_MEMORY_BYTES, max_value=1 << 50, help_text="Empty: the deployment's."
    )
    cpus = forms.FloatField(
        required=False, label="CPUs", min_value=0.01, max_value=1024, help_text="Empty: no limit."
    )

    class Meta:
        model = Task
        fields = (
            "name",
            "description",
            "type",
            "command",
            "image",
            "env",
            "parameters",
            "memory_bytes",
            "cpus",
        )

    def clean(self) -> None:
        super().clean()
        for name in TASK_FIELDS & self.cleaned_data.keys():
            try:
                self.cleaned_data[name] = read_field(name, self.cleaned_data[name])
            except InvalidValue as error:
                self.add_error(name, error.message)
        if not self.errors:
            for name, texts in check_together(self.cleaned_data).items():
                self.add_error(name, texts)
