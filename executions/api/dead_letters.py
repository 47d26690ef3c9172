"""REST of dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from executions.api import parameters
from executions.api.base import RestView
from executions.api.documenting import Body, documented
from executions.api.presentation import time_text
from executions.api.reads import Reads, reads
from executions.api.shapes import flag, instant, one_of, shaped, text
from executions.bus.connection import BusUnavailable
from executions.bus.dead_letters import Letter
from executions.dead_letters import (
    DONE,
    MOST,
    Action,
    Outcome,
    Settled,
    look,
    plain,
    settle,
)
from executions.letter_texts import body_text, header_texts, reason_text
from scheduler_project.kernel.errors import Conflict, InvalidValue
from scheduler_project.kernel.texts import shown

ID_CHARACTERS = 32


class DeadLetterShown(serializers.Serializer[Any]):
    """A message that nobody could read or apply: which run and job it is about, and nothing else of it."""

    id = text("By what it says: the same one whenever it is looked at.")
    queue = text("The queue that it came from, by the broker's name; empty where it does not say.")
    reason = text("Why nobody could read or apply it, without what the error quotes.")
    buriedAt = instant("Since when it is here; null where it does not say.", null=True)
    body = text(
        "What can be told of it, as JSON, less than 8000 characters: its length (`bytes`), the ids of the"
        " `run` and its job or the first `events`, and, where it cannot be read, why (`unreadable`)."
    )
    headers = shaped(
        {"type": "object", "additionalProperties": {"type": "string"}},
        "What it came with: Celery's own, where they are words; of others the name alone.",
    )


class DeadLetterPage(serializers.Serializer[Any]):
    """The oldest dead letters."""

    results = DeadLetterShown(many=True, help_text="The oldest first.")
    more = flag("There are others behind these: settle some of these to see them.")


class SettledLetter(serializers.Serializer[Any]):
    """What became of one."""

    id = text("Which one.")
    outcome = one_of(
        Outcome,
        "`not_there`: somebody else has settled it. `left`: it is where it was. `unknown`: the broker went"
        " away meanwhile; it may have been done, and is here still.",
    )
    detail = text("Why it was not done; empty where it was.")


class SettledLetters(serializers.Serializer[Any]):
    """What became of each."""

    results = SettledLetter(many=True, help_text="Each that was named.")


@reads(
    type="array",
    items={"type": "string", "minLength": 1, "maxLength": ID_CHARACTERS},
    minItems=1,
    maxItems=MOST,
)
def _ids(value: object, name: str) -> list[str]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST:
        raise InvalidValue(f"{shown(value)} is not a list of 1 to {MOST} ids.", field=name)
    for item in value:
        if not isinstance(item, str) or not 1 <= len(item) <= ID_CHARACTERS:
            raise InvalidValue(f"{shown(item)} is not the id of a dead letter.", field=name)
    return value


QUERY: dict[str, parameters.Reader] = {
    "limit": parameters.limit.saying(
        f"How many to look at, at most {MOST}.", default=parameters.DEFAULT_LIMIT
    )
}
FIELDS: dict[str, Reads[Any]] = {"ids": _ids.saying("Of those that the list shows.")}
CHOSEN = Body("DeadLetters", "Which dead letters.", FIELDS, required=("ids",))


class DeadLetterList(RestView):
    @documented("Dead letters", query=QUERY, answers={200: DeadLetterPage})
    def get(self, request: Request) -> Response:
        """What nobody could read or apply, the oldest first. Looking takes none of them away. It needs the
        permission `executions.view_deadletter`."""
        found = look(self.user, self.query.get("limit", parameters.DEFAULT_LIMIT))
        return Response({"results": [letter_json(letter) for letter in found.letters], "more": found.more})


class DeadLetterReplay(RestView):
    @documented("Replay dead letters", body=CHOSEN, answers={200: SettledLetters}, errors=(409,))
    def post(self, request: Request) -> Response:
        """Put them back on the queues that they came from, when the cause is mended. It needs the permission
        `executions.settle_deadletter`. 409: none of them could be, with the reason."""
        return _settled(settle(self.given["ids"], Action.REPLAY, self.user))


class DeadLetterDiscard(RestView):
    @documented("Discard dead letters", body=CHOSEN, answers={200: SettledLetters}, errors=(409,))
    def post(self, request: Request) -> Response:
        """Delete them for good. It needs the permission `executions.settle_deadletter`. 409: none of them
        could be, with the reason."""
        return _settled(settle(self.given["ids"], Action.DISCARD, self.user))


def letter_json(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "queue": plain(letter.queue),
        "reason": reason_text(letter),
        "buriedAt": time_text(letter.since),
        "body": body_text(letter),
        "headers": header_texts(letter),
    }


def settled_json(settled: Sequence[Settled]) -> list[dict[str, Any]]:
    return [{"id": each.id, "outcome": str(each.outcome), "detail": each.detail} for each in settled]


def _settled(settled: Sequence[Settled]) -> Response:
    if not any(each.outcome in DONE for each in settled):
        if any(each.outcome is Outcome.UNKNOWN for each in settled):
            raise BusUnavailable(settled[0].detail)
        raise Conflict(" ".join(dict.fromkeys(each.detail for each in settled)))
    return Response({"results": settled_json(settled)})
