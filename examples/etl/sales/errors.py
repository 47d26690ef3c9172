"""What can go wrong, each with the exit code that tells the scheduler's operator where to look."""

from __future__ import annotations


class StepFailed(Exception):
    """A step cannot go on; the message says which value is wrong and what to do."""

    exit_code = 1


class BadInput(StepFailed):
    """A parameter or an environment variable is missing or cannot be read."""

    exit_code = 2


class SourceFailed(StepFailed):
    """The data to extract are not there or are not what they should be."""

    exit_code = 3


class WarehouseFailed(StepFailed):
    """The warehouse cannot be reached or refused the load."""

    exit_code = 4


class QualityTooLow(StepFailed):
    """So much of the day was rejected that loading the rest would mislead."""

    exit_code = 5
