"""What REST answers with about changes of a job, for the schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from executions.api.shapes import instant, page_of, shaped, text


class FieldChange(serializers.Serializer[Any]):
    """One field before and after. What looks like a secret reads `••••`."""

    before = shaped({}, "Its value before; null: it had none.")
    after = shaped({}, "Its value after; null: it has none.")


class ChangeShown(serializers.Serializer[Any]):
    """Something that somebody did to a job or to one of its runs."""

    id = serializers.UUIDField(help_text="Its id; they sort by time.")
    at = instant("When it was done.")
    who = text("The name of the user, or of the part of Punctual, that did it.")
    token = text("The name of the token that the request came with; null: it had none.", null=True)
    action = text(
        "What was done: created, changed, paused, resumed, deleted, run, backfilled; of a run"
        " cancelled, moved, retried."
    )
    subject = text("To what: the job's name then, or the run.")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=FieldChange(), help_text="What differs, by name; `env.X` is the variable X."
    )


ChangePage = page_of(ChangeShown, "ChangePage")
