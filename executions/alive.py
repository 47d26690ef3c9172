"""This process says in a file that it works (kernel/pulse.py), where the settings name one."""

from __future__ import annotations

from django.conf import settings

from scheduler_project.kernel.pulse import PulseFile


def say_alive() -> None:
    """From now on. InvalidValue where the file cannot be written."""
    PulseFile(settings.PUNCTUAL_ALIVE_FILE, settings.PUNCTUAL_ALIVE_WITHIN.total_seconds()).start()
