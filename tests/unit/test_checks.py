"""The system checks: what a deployment that cannot work is told."""

from __future__ import annotations

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from scheduler_project.checks import CHECKS, PART_CHECKS
from scheduler_project.operating.exits import Exit


def ids() -> set[str]:
    return {str(message.id) for check in (*CHECKS, *PART_CHECKS.values()) for message in check()}


def test_a_deployment_that_has_all_is_told_nothing(settings: Settings) -> None:
    assert ids() == set()


def test_the_checks_are_registered_with_django(settings: Settings) -> None:
    settings.DATABASE_URL = ""
    assert "punctual.E002" in {message.id for message in checks.run_checks()}


@pytest.mark.parametrize(
    ("name", "value", "identity"),
    [
        ("SECRET_KEY", "", "punctual.E001"),
        ("DATABASE_URL", "", "punctual.E002"),
        ("REDIS_URL", "", "punctual.E003"),
        ("BROKER_URL", "", "punctual.E004"),
    ],
)
def test_what_is_missing_is_named(settings: Settings, name: str, value: object, identity: str) -> None:
    setattr(settings, name, value)
    assert ids() == {identity}


def test_dead_letters_are_not_said_to_be_none_where_there_is_no_broker(settings: Settings) -> None:
    settings.BROKER_URL = ""
    with pytest.raises(CommandError, match="BROKER_URL") as refused:
        call_command("dead_letters")
    assert refused.value.returncode == Exit.UNAVAILABLE


def test_debug_that_others_can_reach_is_warned_of(settings: Settings) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["localhost"]
    assert ids() == set()
    settings.ALLOWED_HOSTS = ["jobs.example.org"]
    assert ids() == {"punctual.W002"}
