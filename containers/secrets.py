"""Secrets of a run: named in the job, read by the worker, given to the container; shown nowhere.

A secret's name is one or more words with ``/`` between them: ``data-engineering/warehouse``. The same
name is looked for, in this order, in whatever the worker has:

    the runtime's own     on Kubernetes the key ``warehouse`` of the Secret ``data-engineering``
    its environment       PUNCTUAL_SECRET_DATA_ENGINEERING__WAREHOUSE
    a mounted folder      data-engineering/warehouse below PUNCTUAL_SECRETS_DIR
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from scheduler_project.kernel.errors import PermanentError, RetryableError
from scheduler_project.kernel.texts import unsendable

VARIABLE_PREFIX = "PUNCTUAL_SECRET_"
MOST_BYTES = 64 * 1024  # in all, the environment of a process holds not much more
_WORD = r"[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*"  # never two signs in a row: secret_variable needs it
WORD = re.compile(_WORD, re.ASCII)
NAME = re.compile(rf"{_WORD}(?:/{_WORD})*", re.ASCII)
_SIGNS = str.maketrans({"-": "_", "/": "__", "_": "___", ".": "____"})
NAME_HELP = "words of letters, digits, '-', '_' and '.', with '/' between them, such as team/database"


class SecretMissing(PermanentError):
    """A secret that a run names is in none of the places where this worker looks."""


class SecretsUnavailable(RetryableError):
    """A place that keeps secrets does not answer."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret of a run: ``variable`` is set to ``value``, the value of the secret ``name``.

    Its repr and its text hide the value. ``in_runtime``: the runtime keeps it itself, so that what it
    is asked for refers to it by ``name``, and the value is there for masking the log only.
    """

    variable: str
    name: str
    value: str = field(repr=False)
    in_runtime: bool = False


class SecretSource(Protocol):
    """A place that keeps secrets."""

    @property
    def in_runtime(self) -> bool:
        """Whether the runtime can give them to a container without being told their values."""
        ...

    def read(self, name: str, team: str = "") -> str | None:
        """The value of the secret ``name``; None where this place has none of that name.

        ``team``: whose run it is, for places that keep those of each team apart. Raises
        SecretsUnavailable where the place does not answer. No message ever holds a value.
        """
        ...


@dataclass(frozen=True, slots=True)
class EnvironmentSecrets:
    """The variables of the worker that begin with PUNCTUAL_SECRET_."""

    variables: Mapping[str, str] = field(repr=False)
    in_runtime: ClassVar[bool] = False

    def read(self, name: str, team: str = "") -> str | None:
        return self.variables.get(secret_variable(name))


@dataclass(frozen=True, slots=True)
class FolderSecrets:
    """Files below one folder, as orchestrators mount them; a line end at the end does not count."""

    folder: Path
    in_runtime: ClassVar[bool] = False

    def read(self, name: str, team: str = "") -> str | None:
        try:
            content = (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise SecretsUnavailable(f"the secret {name!r} cannot be read: {error.strerror}") from None
        # What is not UTF-8 becomes surrogates, which are refused: an error of the decoder holds the value.
        return content.decode(errors="surrogateescape").removesuffix("\n").removesuffix("\r")


def secret_variable(name: str) -> str:
    """The worker's variable that holds the secret ``name``; no other secret has the same.

    Small letters are written as capitals and capitals as small ones; ``-`` ``/`` ``_`` ``.`` as one, two,
    three and four underscores, which can be told apart since names have no two signs in a row.
    """
    return VARIABLE_PREFIX + name.swapcase().translate(_SIGNS)


def resolve(wanted: Mapping[str, str], sources: Sequence[SecretSource], team: str = "") -> tuple[Secret, ...]:
    """The secrets that ``wanted`` (variable: name) asks for, each from the first source that has it.

    Raises SecretMissing, naming all that are missing, or SecretsUnavailable.
    """
    found = {name: _first(name, sources, team) for name in sorted(set(wanted.values()))}
    if missing := [name for name, answer in found.items() if answer is None]:
        names = ", ".join(map(repr, missing))
        text = f"no secret {names}: set {secret_variable(missing[0])} for the worker, or put it where"
        raise SecretMissing(f"{text} its runtime or PUNCTUAL_SECRETS_DIR keeps secrets")
    return tuple(
        Secret(variable, name, *answer)
        for variable, name in sorted(wanted.items())
        if (answer := found[name]) is not None
    )


def _first(name: str, sources: Sequence[SecretSource], team: str) -> tuple[str, bool] | None:
    for source in sources:
        if (value := source.read(name, team)) is not None:
            return _checked(name, value), source.in_runtime
    return None


def _checked(name: str, value: str) -> str:
    if unsendable(value) or len(value.encode("utf-8", "replace")) > MOST_BYTES:
        raise SecretMissing(f"the secret {name!r} is no UTF-8 of at most {MOST_BYTES} bytes without NUL")
    return value
