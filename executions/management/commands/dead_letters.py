from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from executions.api.dead_letters import letter_json, settled_json
from executions.bus.dead_letters import Letter
from executions.bus.topology import DEAD
from executions.dead_letters import DONE, MOST, Action, Outcome, Settled, look, settle
from executions.letter_texts import body_text, reason_text
from scheduler_project.kernel.texts import shortened
from scheduler_project.operating.command import OperatorCommand, Options
from scheduler_project.operating.exits import Exit
from scheduler_project.operating.words import counted

SHOWN = 400
_DONE = {Action.REPLAY: "put back", Action.DISCARD: "deleted"}


class Command(OperatorCommand):
    help = (
        f"List the messages that nobody could read or apply (queue {DEAD}), oldest first;"
        " put them back where they came from, or throw them away."
    )
    parts = ("DATABASE_URL", "BROKER_URL")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", nargs="*", metavar="ID", help="only these, of those that are listed")
        parser.add_argument(
            "--limit", type=int, default=MOST, help=f"look at this many, the oldest ones (default: {MOST})"
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--replay", action="store_true", help="put them back on the queue they came from")
        what.add_argument("--discard", action="store_true", help="delete them")
        self.add_common(parser)

    def act(self, options: Options) -> Exit:
        if options["limit"] < 1:
            raise CommandError(f"--limit {options['limit']}: at least 1 is needed.", returncode=Exit.USAGE)
        user, most = self.user(options), options["limit"]
        found = look(user, most, within_s=options["limit"])
        named = set(options["id"])
        letters = [letter for letter in found.letters if not named or letter.id in named]
        action = Action.REPLAY if options["replay"] else Action.DISCARD if options["discard"] else None
        wanted = options["id"] or [letter.id for letter in letters]
        settled = settle(wanted, action, user, most) if action and wanted else []
        if self.as_json:
            self.write_json(_as_json(letters, settled, more=found.more))
        else:
            self._write(letters, settled, action, more=found.more)
        left = [each for each in settled if each.outcome not in DONE]
        if any(each.outcome is Outcome.UNKNOWN for each in left):
            return Exit.UNAVAILABLE
        return Exit.REFUSED if left else Exit.DONE

    def _write(
        self, letters: Sequence[Letter], settled: Sequence[Settled], action: Action | None, *, more: bool
    ) -> None:
        for letter in letters:
            self.stdout.write(f"{letter.buried_at}  {letter.queue}  {reason_text(letter)!r}  {letter.id}")
            self.stdout.write(f"  {shortened(body_text(letter), SHOWN)}")
        for each in settled:
            if each.outcome not in DONE:
                self.stderr.write(f"{each.id}: {each.detail}")
        told = counted(len(letters), "dead letter") + (" and more" if more else "")
        if action is None:
            hint = "; --replay puts them back, --discard deletes them" if letters else ""
            self.stdout.write(told + hint)
        else:
            done = sum(each.outcome in DONE for each in settled)
            self.stdout.write(f"{told}, {done} {_DONE[action]}")


def _as_json(letters: Sequence[Letter], settled: Sequence[Settled], *, more: bool) -> dict[str, Any]:
    return {
        "results": [letter_json(letter) for letter in letters],
        "more": more,
        "settled": settled_json(settled),
    }
