from typing import Any

from django.core.management.base import CommandError, CommandParser

from executions.bus.connection import BusUnavailable
from executions.bus.dead_letters import DeadLetter, dead_letters
from executions.bus.topology import DEAD
from scheduler_project.commands import TerminalCommand
from scheduler_project.kernel.texts import shortened

SHOWN = 200


class Command(TerminalCommand):
    help = (
        f"List the messages that nobody could read or apply (queue {DEAD}), oldest first;"
        " put them back where they came from, or throw them away."
    )
    requires_system_checks = ("BROKER_URL",)  # that it has an address: without, none would be looked at

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit", type=int, default=100, help="look at this many (default: 100)")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--replay", action="store_true", help="put them back on the queue they came from")
        what.add_argument("--discard", action="store_true", help="delete them")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["limit"] < 1:
            raise CommandError(f"--limit {options['limit']}: at least 1 is needed.")
        try:
            with dead_letters(options["limit"]) as letters:
                for letter in letters:
                    self.stdout.write(_line(letter))
                    self._settle(letter, options)
        except BusUnavailable as error:
            raise CommandError(error.message) from error
        count = "1 dead letter" if len(letters) == 1 else f"{len(letters)} dead letters"
        self.stdout.write(f"{count}{_done(options) if letters else ''}")

    def _settle(self, letter: DeadLetter, options: dict[str, Any]) -> None:
        if options["discard"]:
            letter.discard()
        elif options["replay"] and letter.queue:
            letter.replay()
        elif options["replay"]:
            self.stderr.write("  it does not say which queue it came from: left here")


def _line(letter: DeadLetter) -> str:
    body = shortened(letter.body, SHOWN)
    return f"{letter.buried_at}  {letter.queue}  {letter.reason!r}\n  {body!r}"


def _done(options: dict[str, Any]) -> str:
    if options["replay"]:
        return ", put back"
    return ", deleted" if options["discard"] else "; --replay puts them back, --discard deletes them"
