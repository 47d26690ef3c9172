"""A job's ``retryPolicy`` as fields of the admin's form.

They only collect: what is allowed is decided by executions/retry_policies.py, as for REST. A field that is
left empty is left out of the policy, and so means its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold import widgets

from executions.exit_codes import MOST_CODE, codes_text, read_codes
from executions.explanations import REASONS
from executions.retry_policies import FACTOR, LEAST_FACTOR, MAX_DELAY, MOST_FACTOR, RETRIED, Backoff
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidValue

LENGTH_HELP = "A number and a unit: ms, s, m, h, d or w. For example 90s, 5m or 1h30m."
FIELD_OF = {
    "backoff": "retryBackoff",
    "factor": "retryFactor",
    "maxDelay": "retryMaxDelay",
    "jitter": "retryJitter",
    "reasons": "retryReasons",
    "exitCodes": "retryExitCodes",
    "maxElapsed": "retryMaxElapsed",
}
"""The form's field of each field of the policy."""
_NUMBERS = ("factor", "jitter")
_BACKOFFS = {
    Backoff.FIXED: "fixed: the same pause each time",
    Backoff.EXPONENTIAL: "exponential: each pause longer than the one before",
}
_NUMBER = re.compile(r"[+-]?([0-9]{1,15}(\.[0-9]{0,30})?|\.[0-9]{1,30})(e[+-]?[0-9]{1,3})?", re.ASCII | re.I)
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)
_LONGEST = 1000


if TYPE_CHECKING:  # its package has no types
    _Boxes = forms.CheckboxSelectMultiple
else:
    _Boxes = widgets.UnfoldAdminCheckboxSelectMultipleWidget


class ChoicesWidget(_Boxes):
    """Boxes to tick, as one group with a name."""

    template_name = "admin/jobs/job/choices.html"

    def __init__(self, group: str) -> None:
        super().__init__()
        self.group = group

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        return {**context, "group": self.group}


class UncheckedChoices(forms.MultipleChoiceField):
    """Its values go on as they came: the policy's own reader says what is wrong with them."""

    def valid_value(self, value: Any) -> bool:
        return True


def _reason(reason: str) -> SafeString:
    return format_html("<b>{}</b> {}", reason.replace("_", " "), REASONS[reason].sentence)


def _line_of_text(label: str, help_text: str, **attrs: str) -> forms.CharField:
    widget = widgets.UnfoldAdminTextInputWidget(attrs=attrs)
    return forms.CharField(
        required=False, max_length=_LONGEST, label=label, widget=widget, help_text=help_text
    )


class RetryFields(forms.Form):
    """The part of a job's form that is its retry policy."""

    retryBackoff = forms.ChoiceField(
        label="Back-off",
        required=False,
        choices=[(str(kind), words) for kind, words in _BACKOFFS.items()],
        initial=str(Backoff.FIXED),
        widget=widgets.UnfoldAdminSelectWidget,
        help_text="How the pauses go on after the first, which is the retry delay.",
    )
    retryFactor = _line_of_text(
        "Back-off factor",
        f"Exponential only: how many times as long as the one before each pause is, from {LEAST_FACTOR:g} "
        f"to {MOST_FACTOR:g}. Empty: {FACTOR:g}.",
        inputmode="decimal",
    )
    retryMaxDelay = _line_of_text(
        "Longest pause",
        f"Exponential only: no pause is longer than this. Empty: {format_duration(MAX_DELAY)}. {LENGTH_HELP}",
    )
    retryJitter = _line_of_text(
        "Jitter of the pauses",
        "The part of each pause, from 0 to 1, that chance may take away, so that runs which failed together "
        "do not come back together. Empty: 0, each pause in full.",
        inputmode="decimal",
    )
    retryReasons = UncheckedChoices(
        label="Retried reasons",
        required=False,
        choices=[(reason, _reason(reason)) for reason in RETRIED],
        widget=ChoicesWidget("Retried reasons"),
        help_text="A failure with one of these, or with one of the exit codes below, is retried. "
        "None of either: every failure.",
    )
    retryExitCodes = _line_of_text(
        "Retried exit codes",
        f"From 1 to {MOST_CODE}, with commas between them; ranges too: 1, 75, 100-110. A failure with one of "
        "these, or with one of the reasons above, is retried. Empty: the reasons alone decide.",
    )
    retryMaxElapsed = _line_of_text(
        "Retried for",
        "An attempt that would be due later than this after the first start of the run is not made. "
        f"Empty: without limit. {LENGTH_HELP}",
    )

    def clean_retryExitCodes(self) -> list[int]:
        try:
            return read_codes(self.cleaned_data["retryExitCodes"])
        except InvalidValue as error:
            raise ValidationError(error.message) from error

    def policy_changed(self) -> bool:
        return not set(FIELD_OF.values()).isdisjoint(self.changed_data)


def take_policy(body: dict[str, Any]) -> dict[str, Any]:
    """The policy, as REST takes it, that the fields in ``body`` say; they are taken out of it."""
    given = {name: body.pop(field, None) for name, field in FIELD_OF.items()}
    return {
        name: _number(value) if name in _NUMBERS else value
        for name, value in given.items()
        if value not in (None, "", [])
    }


def shown_policy(stored: object) -> dict[str, Any]:
    """What the fields show of a policy; one that was written past the definitions as far as it fits them."""
    policy = stored if isinstance(stored, Mapping) else {}
    shown = {FIELD_OF[name]: _text(policy[name]) for name in FIELD_OF if name in policy}
    return shown | {FIELD_OF["reasons"]: _listed(policy.get("reasons"))}


def field_of(path: str) -> str:
    """The form's field of what REST calls ``path``: of ``retryPolicy.reasons.0`` it is ``retryReasons``."""
    root, _, within = path.partition(".")
    return FIELD_OF.get(within.partition(".")[0], path) if root == "retryPolicy" else path


def _number(text: str) -> int | float | str:
    """What is no number goes on as it is, for the reader to name it."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        whole = all(type(item) is int for item in value)
        return codes_text(value) if whole else ", ".join(map(str, value))
    return "" if value is None else str(value)


def _listed(value: Any) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
