"""The admin's forms: they collect texts; what is allowed is decided by definitions.py and services.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from rest_framework.exceptions import ParseError
from unfold import widgets

from access.policy import Forbidden, User, sees_all, team_ids
from access.roles import teams as all_teams
from containers.allowed import check
from containers.options import FIELDS as CONTAINER_FIELDS
from containers.options import read_options
from executions.allowance import allowed_here
from executions.api.parsing import read_object
from executions.priorities import DEFAULT_QUEUE, Priority
from jobs import services
from jobs.admin_retries import LENGTH_HELP, RetryFields, field_of, shown_policy, take_policy
from jobs.definitions import (
    JobDefinition,
    definition_body,
    read_definition,
    read_field,
)
from jobs.models import Job, MisfirePolicy, Overlap, Pool, Task, WorkType
from jobs.schedules import parse_schedule
from jobs.work import check_together
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue

SCHEDULE_HELP = (
    "A cron expression (<code>0 2 * * *</code>, in UTC, or <code>0 2 * * * Europe/Berlin</code>), "
    "<code>every 30s</code>, <code>at 2026-12-24T18:00:00Z</code>, <code>after 5m</code>, <code>now</code>. "
    'With more to say, an object: <code>{"cron": "0 2 * * *", "timezone": "Europe/Berlin", '
    '"dstGap": "skip"}</code>.'
)
TASK_FIELDS = {"name", "description", "type", "command", "image", "env", "parameters", "container"}
CONTAINER_HELP = (
    "A JSON object; empty: what this deployment sets for all. For example "
    '<code>{"resources": {"memory": {"limit": "2Gi"}, "cpu": {"limit": 1.5}}, '
    '"secretEnv": {"PGPASSWORD": "team/warehouse"}, '
    '"volumes": [{"source": "/data/sales", "target": "/data"}]}</code>. '
    f"Its fields: {', '.join(CONTAINER_FIELDS)}."
)


def _not_an_object(error: ParseError | InvalidFields) -> ValidationError:
    """The same complaint as over REST, where it is the body's."""
    return ValidationError(str(error).replace("The body", "This text", 1))


class ObjectField(forms.CharField):
    """A JSON object as text, read like a REST body."""

    widget = widgets.UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"})

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


class JobForm(RetryFields):
    """A job. The fields have the names of the REST body, so that its errors find their place."""

    name = forms.CharField(widget=widgets.UnfoldAdminTextInputWidget)
    owner = forms.ModelChoiceField(
        Group.objects.none(),
        widget=widgets.UnfoldAdminSelectWidget,
        to_field_name="name",
        help_text="The team that owns the job: a group of yours.",
    )
    description = forms.CharField(required=False, widget=widgets.UnfoldAdminTextareaWidget(attrs={"rows": 2}))
    task = forms.ModelChoiceField(
        Task.objects.order_by("name"),
        widget=widgets.UnfoldAdminSelectWidget,
        to_field_name="name",
        required=False,
        help_text="What is left out below is the task's; parameters and variables are added to its.",
    )
    type = forms.ChoiceField(
        widget=widgets.UnfoldAdminSelectWidget,
        required=False,
        choices=WorkType.choices,
        help_text="With a task it is the task's.",
    )
    command = forms.CharField(
        required=False,
        strip=False,
        widget=widgets.UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="Python and Container: the words to start. Script: a text for sh. SQL: a text for psql.",
    )
    image = forms.CharField(
        required=False,
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text="Empty: the one set for the type.",
    )
    schedule = forms.CharField(widget=widgets.UnfoldAdminTextInputWidget, help_text=SCHEDULE_HELP)
    parameters = ObjectField(
        required=False,
        help_text="A JSON object. {{ ds }} and the like are filled in, here and in the command.",
    )
    env = ObjectField(required=False, label="Environment", help_text="A JSON object of names and texts.")
    container = ObjectField(required=False, help_text=CONTAINER_HELP)
    retries = forms.IntegerField(
        widget=widgets.UnfoldAdminIntegerFieldWidget,
        initial=0,
        help_text="Further attempts after the first fails, at most.",
    )
    retryDelay = forms.CharField(
        label="Retry delay", initial="5m", widget=widgets.UnfoldAdminTextInputWidget, help_text=LENGTH_HELP
    )
    timeout = forms.CharField(
        required=False,
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text=f"From the start of the container; empty: none. {LENGTH_HELP}",
    )

    overlap = forms.ChoiceField(
        widget=widgets.UnfoldAdminSelectWidget,
        required=False,
        choices=Overlap.choices,
        initial=Overlap.FORBID,
        help_text="What becomes of a time that comes while a run has not ended.",
    )
    misfire = forms.ChoiceField(
        widget=widgets.UnfoldAdminSelectWidget,
        required=False,
        choices=MisfirePolicy.choices,
        initial=MisfirePolicy.LATEST,
        label="Late runs",
        help_text="Misfire policy: which of the times that passed, in an outage for example, are still run.",
    )
    misfireMaxAge = forms.CharField(
        label="Late runs: not older than",
        required=False,
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text=f"Empty: any age. {LENGTH_HELP}",
    )
    misfireMaxCount = forms.IntegerField(
        widget=widgets.UnfoldAdminIntegerFieldWidget,
        label="Late runs: at most",
        required=False,
        help_text="Empty: however many.",
    )
    jitter = forms.CharField(
        required=False,
        initial="0s",
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text=f"Spreads jobs of one instant over this time; 0s: on the dot. {LENGTH_HELP}",
    )

    queue = forms.CharField(
        required=False,
        initial=DEFAULT_QUEUE,
        widget=widgets.UnfoldAdminTextInputWidget,
        help_text="Workers that were started with -Q and this name run it.",
    )
    priority = forms.ChoiceField(
        widget=widgets.UnfoldAdminSelectWidget,
        required=False,
        choices=[(str(item), str(item)) for item in Priority],
        initial=str(Priority.NORMAL),
        help_text="Within its queue and its pool; a lower one waits for every higher one.",
    )
    pool = forms.ModelChoiceField(
        Pool.objects.filter(team=None),
        widget=widgets.UnfoldAdminSelectWidget,
        to_field_name="name",
        required=False,
        help_text="It runs when the pool has a free place. A pool of its team holds without being named.",
    )
    maxActive = forms.IntegerField(
        widget=widgets.UnfoldAdminIntegerFieldWidget,
        label="Runs at once",
        required=False,
        help_text="However they were begun. Empty: no limit.",
    )

    def __init__(self, *args: Any, user: User, job: Job | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **{**({} if job is None else {"initial": _initial(job)}), **kwargs})
        self._user = user
        self._job = job
        teams = all_teams().order_by("name")
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
        policy = take_policy(body)
        body["retryPolicy"] = policy if self._job is None or self.policy_changed() else self._job.retry_policy
        task: Task | None = body.get("task")
        body["task"] = task.name if task else None
        if task is not None:
            body.pop("type", None)
        pool: Pool | None = body.get("pool")
        body["pool"] = pool.name if pool else None
        for name in ("overlap", "jitter", "queue", "priority"):  # left out: the default
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
                add_error(self, field_of(name), texts)


def add_error(form: forms.BaseForm, path: str, texts: list[str]) -> None:
    """At the field, or at the one that holds it (``container.user``), or at the top where there is none."""
    field, _, within = path.partition(".")
    if field not in form.fields:
        form.add_error(None, texts)
    else:
        form.add_error(field, [f"{path}: {text}" for text in texts] if within else texts)


def copy_of(job: Job) -> dict[str, Any]:
    """What the form shows at first of a new job that is to be like ``job``."""
    return {**_initial(job), "name": f"{job.name}-copy"}


def _initial(job: Job) -> dict[str, Any]:
    """What the form shows of a job that is there."""
    body = definition_body(job)
    limits = {"misfireMaxAge": body["misfire"]["maxAge"], "misfireMaxCount": body["misfire"]["maxCount"]}
    retries = shown_policy(body["retryPolicy"])
    return {
        **body,
        **limits,
        **retries,
        "misfire": job.misfire,
        "schedule": _schedule_as_written(job.schedule),
    }


def _schedule_as_written(stored: Any) -> str:
    """As short as can be: without what is the default; as a text where that says all."""
    if not isinstance(stored, dict):
        return json.dumps(stored, ensure_ascii=False)
    said = dict(stored)
    for key in stored:
        shorter = {name: value for name, value in said.items() if name != key}
        said = shorter if _means(shorter, stored) else said
    text = _in_words(said)
    return text if _means(text, stored) else json.dumps(said, ensure_ascii=False)


def _in_words(said: Mapping[str, Any]) -> str:
    """``every 10s``; of a cron schedule the expression, and its zone where it names one."""
    if "cron" in said:
        return f"{said['cron']} {said.get('timezone', '')}".strip()
    return " ".join(f"{key} {value}" for key, value in said.items())


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
    container = ObjectField(required=False, help_text=CONTAINER_HELP)

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
            "container",
        )

    def clean(self) -> None:
        super().clean()
        for name in TASK_FIELDS & self.cleaned_data.keys():
            try:
                self.cleaned_data[name] = read_field(name, self.cleaned_data[name])
            except InvalidValue as error:
                self.add_error(name, error.message)
            except InvalidFields as error:
                self._add_errors(error.errors)
        if not self.errors:
            self._add_errors(check_together(self.cleaned_data) or self._not_allowed())

    def _not_allowed(self) -> dict[str, list[str]]:
        """By the policy, for a job of whatever team: which one it is is known when a job is made of it."""
        options = read_options(self.cleaned_data["container"])
        try:
            check(self.cleaned_data["image"], options, allowed_here(), None)
        except InvalidFields as error:
            return error.errors
        return {}

    def _add_errors(self, errors: Mapping[str, list[str]]) -> None:
        for path, texts in errors.items():
            add_error(self, path, texts)
