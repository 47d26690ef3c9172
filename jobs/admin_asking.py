"""Pages of the admin that ask before they do something with one job: a run with parameters, a backfill."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django import forms
from unfold import widgets

from access.policy import Forbidden, User
from executions.api.parameters import instant
from jobs.admin_forms import ObjectField, add_error
from jobs.backfills import MAX_ACTIVE, BackfilledRun, BackfillRequest, backfill
from jobs.models import Job
from jobs.rendering import WouldRun, would_run
from jobs.runs import RunRequest, StartedRun, run_job
from jobs.snapshots import spec_of
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue

_DAY = timedelta(days=1)
_FIELDS = {"from": "since", "to": "until"}  # as a form has them, since one of them is a word of Python
_Done = TypeVar("_Done")


class RunForm(forms.Form):
    """The parameters of one run: those of the job, to be changed."""

    parameters = ObjectField(
        required=False,
        help_text="A JSON object. What is changed or added here holds for this run alone; what is taken away"
        " is as the job has it. {{ ds }} and the like are filled in.",
    )

    def __init__(self, *args: Any, job: Job, user: User, **kwargs: Any) -> None:
        self.job, self.user = job, user
        self._own: Mapping[str, Any] = spec_of(job).parameters
        super().__init__(*args, **{"initial": {"parameters": dict(self._own)}, **kwargs})
        self.fields["parameters"].widget.attrs["rows"] = max(6, min(20, len(self._own) + 3))

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters that are not as the job has them."""
        given = self.cleaned_data["parameters"]
        return {
            name: value
            for name, value in given.items()
            if name not in self._own or not _same(value, self._own[name])
        }

    def would_run(self, now: datetime) -> WouldRun:
        return would_run(self.job, now, self.changed)

    def start(self, now: datetime) -> StartedRun | None:
        """The run, or None, and then the form has an error."""
        return _tried(self, lambda: run_job(self.job, self.user, now, RunRequest(self.changed)))


class BackfillForm(forms.Form):
    """A span of the past; the names are those of the REST body."""

    since = forms.CharField(
        label="From (UTC)", help_text="The first instant, for example 2026-11-30T00:00:00Z."
    )
    until = forms.CharField(label="To (UTC)", help_text="Up to this instant, without it.")
    maxActive = forms.IntegerField(
        label="Runs at once",
        initial=1,
        min_value=1,
        max_value=MAX_ACTIVE,
        help_text=f"How many of these runs may be under way at once: 1 to {MAX_ACTIVE}.",
    )

    def __init__(self, *args: Any, job: Job, user: User, now: datetime, **kwargs: Any) -> None:
        self.job, self.user, self.now = job, user, now
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        initial = {"since": _text(midnight - _DAY), "until": _text(midnight)}
        super().__init__(*args, **{"initial": initial, **kwargs})
        for name in ("since", "until"):
            self.fields[name].widget = widgets.UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
        self.fields["maxActive"].widget = widgets.UnfoldAdminIntegerFieldWidget()

    def clean_since(self) -> datetime:
        return self._instant("since")

    def clean_until(self) -> datetime:
        return self._instant("until")

    def _instant(self, name: str) -> datetime:
        try:
            return instant(self.cleaned_data[name].strip(), name)
        except InvalidValue as error:
            raise forms.ValidationError(error.message) from error

    def plan(self) -> list[BackfilledRun] | None:
        """What would be made, or None, and then the form has an error."""
        return self._asked(dry_run=True)

    def make(self) -> list[BackfilledRun] | None:
        """The runs, or None, and then the form has an error."""
        return self._asked(dry_run=False)

    def _asked(self, *, dry_run: bool) -> list[BackfilledRun] | None:
        given = self.cleaned_data
        asked = BackfillRequest(given["since"], given["until"], given["maxActive"], dry_run)
        return _tried(self, lambda: backfill(self.job, asked, self.user, self.now))


def _tried(form: forms.Form, act: Callable[[], _Done]) -> _Done | None:
    try:
        return act()
    except InvalidFields as error:
        for name, texts in error.errors.items():
            add_error(form, _FIELDS.get(name, name), texts)
    except (Conflict, Forbidden) as error:
        form.add_error(None, error.message)
    return None


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _same(one: Any, other: Any) -> bool:
    """As JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
