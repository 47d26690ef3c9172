"""The frame of an operator's command: actions, options that all have, errors on one line, exit statuses."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, tzinfo
from typing import Any, NoReturn

from django.contrib.auth.models import User as DjangoUser
from django.core.management.base import CommandError, CommandParser
from django.core.management.color import no_style
from django.db.utils import Error as DatabaseError

from access.policy import Forbidden, System
from scheduler_project.commands import TerminalCommand
from scheduler_project.kernel.errors import (
    Conflict,
    InvalidFields,
    InvalidValue,
    NotFound,
    PunctualError,
    RetryableError,
)
from scheduler_project.kernel.texts import shown
from scheduler_project.operating.exits import Exit
from scheduler_project.operating.tables import Column, for_terminal, table
from scheduler_project.operating.times import machine_zone, shown_time
from scheduler_project.startup import CannotStart, require_parts, unmigrated, unreachable

Options = dict[str, Any]
Act = Callable[[Options], Exit | None]
Reader = Callable[[str, str], Any]

_EXITS: tuple[tuple[type[PunctualError], Exit], ...] = (
    (InvalidFields, Exit.USAGE),
    (InvalidValue, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Forbidden, Exit.REFUSED),
    (Conflict, Exit.REFUSED),
    (CannotStart, Exit.UNAVAILABLE),
    (RetryableError, Exit.UNAVAILABLE),
)
UNKNOWN_WIDTH = 80


class OperatorCommand(TerminalCommand):
    """A command with the options ``--json``, ``--user`` and ``--local``.

    One with several actions adds them with ``add_action``; one with none overrides ``act``. ``parts``: whose
    addresses it needs.
    """

    requires_system_checks = ()
    parts: Sequence[str] = ("DATABASE_URL",)
    zone: tzinfo = UTC
    as_json = False

    def act(self, options: Options) -> Exit | None:
        raise NotImplementedError

    def add_action(self, actions: Any, name: str, act: Act, help: str) -> CommandParser:
        """The parser of an action, to which its own arguments are added."""
        parser: CommandParser = actions.add_parser(name, help=help, description=help)
        parser.set_defaults(act=act)
        self.add_common(parser)
        parser.add_argument("--no-color", action="store_true", default=argparse.SUPPRESS, help="no colours")
        return parser

    def add_common(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="answer in JSON, with the names of REST")
        parser.add_argument("--local", action="store_true", help="times in this machine's zone, not in UTC")
        parser.add_argument(
            "--user", default="", metavar="NAME", help="act with this user's rights; without it, with all"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        self.as_json = options["json"]
        self.zone = machine_zone() if options["local"] else UTC
        if os.environ.get("NO_COLOR"):
            self.style = no_style()
            self.stderr.style_func = None
        with self._ended(), _without_log(unless=options["verbosity"] > 1):
            require_parts(*self.parts)
            done = options.get("act", self.act)(options)
        if done:
            raise SystemExit(int(done))

    @contextmanager
    def _ended(self) -> Iterator[None]:
        try:
            yield
            self.stdout.flush()
        except BrokenPipeError:
            _leave_the_pipe()
        except KeyboardInterrupt:
            raise SystemExit(int(Exit.INTERRUPTED)) from None
        except PunctualError as error:
            raise CommandError(_on_one_line(error), returncode=_exit_of(error)) from error
        except DatabaseError as error:
            if told := unreachable(error):
                raise CommandError(told, returncode=Exit.UNAVAILABLE) from error
            if told := unmigrated(error):
                raise CommandError(told, returncode=Exit.REFUSED) from error
            raise

    # --- What was asked for ----------------------------------------------------------------------

    def user(self, options: Options) -> DjangoUser | System:
        """Whose rights count. NotFound; Forbidden for one who may no longer do anything."""
        name = options["user"]
        if not name:
            command = type(self).__module__.rpartition(".")[2]
            return System(f"manage.py {command}")
        found = DjangoUser.objects.filter(username=name).first()
        if found is None:
            raise NotFound(f"There is no user {shown(name)}.")
        if not found.is_active:
            raise Forbidden(f"The user {shown(name)} is not active, and may do nothing.")
        return found

    # --- What is answered ------------------------------------------------------------------------

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where the output goes elsewhere, and nothing is cut."""
        if not self.stdout.isatty():
            return None
        return shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns

    def write_json(self, answer: Mapping[str, Any]) -> None:
        self.stdout.write(json.dumps(answer, indent=2))

    def write_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.stdout.write(line)

    def write_table(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[object]],
        styles: Sequence[Callable[[str], str] | None] = (),
    ) -> None:
        """``styles``: what colours each row."""
        head, *lines = table(columns, rows, self.width)
        self.stdout.write(head)
        for line, style in zip(lines, styles or [None] * len(lines), strict=True):
            self.stdout.write(line, style)

    def tell(self, message: str) -> None:
        """A line beside the output, for people: on stderr, in no colour."""
        self.stderr.write(message, lambda text: text)

    def write_output(self, piece: bytes) -> None:
        """What a run has put out: as it is into a pipe; nothing but colours commands a terminal."""
        out: Any = self.stdout._out  # what writes escapes, and takes no bytes
        if self.stdout.isatty() or not hasattr(out, "buffer"):
            out.write(for_terminal(piece.decode(errors="replace")))
        else:
            out.flush()
            out.buffer.write(piece)

    def time(self, instant: Any) -> str:
        return shown_time(instant, self.zone)


@contextmanager
def _without_log(*, unless: bool) -> Iterator[None]:
    """What has to be said, a command says in words: lines of the log below ERROR are for ``-v 2``."""
    before = logging.root.manager.disable
    logging.disable(before if unless else max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def option(reader: Reader, name: str) -> Callable[[str], Any]:
    """REST's reader of a parameter as the type of an argument: what it refuses is an error of usage."""

    def read(text: str) -> Any:
        try:
            return reader(text, name)
        except InvalidValue as error:
            raise argparse.ArgumentTypeError(error.message) from error

    return read


def field_lines(fields: Mapping[str, object]) -> list[str]:
    """``name   value``, the values below each other; what is empty is left out."""
    given = {name: str(value) for name, value in fields.items() if value not in (None, "", {}, [])}
    width = max(map(len, given), default=0) + 2
    lines = []
    for name, value in given.items():
        first, *others = value.splitlines() or [""]
        lines += [f"{name:{width}}{first}", *(" " * width + line for line in others)]
    return lines


def _exit_of(error: PunctualError) -> Exit:
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.REFUSED)


def _on_one_line(error: PunctualError) -> str:
    return " ".join(error.message.split())


def _leave_the_pipe() -> NoReturn:
    """Nobody reads what is written: what Python still has to write at its end goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(int(Exit.PIPE_CLOSED)) from None
