"""What the commands of Punctual have in common: what they were given does not command a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

from django.core.management.base import BaseCommand, OutputWrapper

from scheduler_project.kernel.texts import escaped_lines


class EscapedOutput(OutputWrapper):
    """Writes out the control characters of a text before Django adds its own, which colour it."""

    def write(  # type: ignore[override]  # so has Django's
        self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None
    ) -> None:
        super().write(escaped_lines(msg), style_func, ending)


class TerminalCommand(BaseCommand):
    """A command that repeats texts of others: of files, of messages, of the database; its errors too."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._write_to(sys.stdout, sys.stderr)
        self.stderr.style_func = self.style.ERROR

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._write_to(options.pop("stdout", None), options.pop("stderr", None))
        return super().execute(*args, **options)

    def _write_to(self, stdout: TextIO | None, stderr: TextIO | None) -> None:
        if stdout is not None:
            self.stdout = EscapedOutput(stdout)
        if stderr is not None:
            self.stderr = EscapedOutput(stderr)
