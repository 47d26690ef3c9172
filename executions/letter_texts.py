"""What is shown of a dead letter: which run and job it is about, and why nobody could read it (pure).

It may be of any team, and who looks at it need not be in that one. A body that was cut off or changed says
nowhere which of its texts is a secret. So nothing is masked here: shown is what stands at its known place and
has the form of an id, a number, an instant or a word of ours. All else (commands, variables, parameters,
messages, what cannot be read) is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from access.masking import HIDDEN, masked
from executions.bus.dead_letters import Letter
from executions.events import Event
from executions.runspecs import Spec
from scheduler_project.kernel.texts import escaped_lines, shortened

READ_BYTES = 65_536
"""A longer body is not read: what its beginning tells is shown."""
MOST_EVENTS, MOST_RUNS = 10, 5
_LONGEST_NAME = 100

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER = "-?[0-9]{1,18}"
_TYPE = "JOB_[A-Z_]{1,30}"
_WORD = re.compile(r"[\w.@:+-]{1,100}", re.ASCII)
_BEGINNING_OF_A_RUN = re.compile(
    rf'\[\[\],\{{"execution":"(?P<execution>{_UUID})"'
    rf'(?:,"attempt":(?P<attempt>{_NUMBER})(?=,)(?:,"generation":(?P<generation>{_NUMBER})(?=,))?)?'
)
_BEGINNING_OF_EVENTS = '{"events":['
_AN_EVENT = re.compile(
    rf'\{{"type":"(?P<type>{_TYPE})","execution":"(?P<execution>{_UUID})"'
    rf'(?:,"attempt":(?P<attempt>{_NUMBER})(?=,))?'
)
_HEADERS = frozenset({"lang", "task", "id", "root_id", "parent_id", "group", "retries", "eta", "expires"}) | {
    "timelimit",
    "origin",
    "ignore_result",
}
_KNOWN_WORDS = "|".join(
    re.escape(word)
    for word in sorted(
        {item.name for kind in (Spec, Event) for item in fields(kind)}
        | {"events", "runs", "execution", "spec", "queued", "flags", "items", "utf-8", ",", ":"}
        | {"str", "int", "float", "bool", "list", "dict", "NoneType"}
    )
)
_QUOTED = re.compile(
    rf"""'(?:{_KNOWN_WORDS}|{_TYPE})'(?!\w)"""
    r"""|(?<=\Athere is no task )'[\w.@:+-]{1,100}'\Z"""  # a header says it too
    r"""|\b(?:relation|constraint|column|table|index) "\w{1,63}"(?!\w)"""
    r"""|(?P<unknown>(?:(?<![A-Za-z])|\bb)["'])"""
)
_ENDS = re.compile(
    r" (?:is not a valid EventType|is not a number from 1 to \d+|is not a whole number|has no time zone)\Z"
)


def body_text(letter: Letter) -> str:
    """JSON: what it is, how long, and of each run that it names (the first ones, where there are many) what
    finds it."""
    found = {"bytes": len(letter.body), **_told(letter.body)}
    return json.dumps(
        {name: value for name, value in found.items() if value not in (None, [], {})}, ensure_ascii=False
    )


def header_texts(letter: Letter) -> dict[str, str]:
    """Those that its sender gave it: of Celery's own the value where it is a word, of others the name."""
    return {
        escaped_lines(shortened(str(name), _LONGEST_NAME)): _header_text(str(name), value)
        for name, value in letter.sent_headers.items()
    }


def reason_text(letter: Letter) -> str:
    """Why it is here, without what the error quotes: that may be of the body, or of a row of the database."""
    first, *others = letter.reason.split("\n", 1)
    text = escaped_lines(str(masked(_without_quotes(first))))
    return f"{text} …" if others else text


def _without_quotes(text: str) -> str:
    for found in _QUOTED.finditer(text):
        if found["unknown"]:
            end = _ENDS.search(text, found.start())
            return text[: found.start()] + HIDDEN + (end[0] if end else "")
    return text


def _header_text(name: str, value: Any) -> str:
    if name not in _HEADERS:
        return HIDDEN
    if isinstance(value, str):
        return str(masked(value)) if _WORD.fullmatch(value) else HIDDEN
    return json.dumps(value) if _of_numbers(value) else HIDDEN


def _of_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(item is None or isinstance(item, int | float) for item in value)
    return value is None or isinstance(value, bool) or _number(value) is not None


def _told(body: bytes) -> dict[str, Any]:
    if len(body) > READ_BYTES:
        why = f"it is longer than {READ_BYTES} bytes, and is not read here"
    else:
        try:
            return _of_json(json.loads(body))
        except RecursionError:
            why = "it is nested too deeply"
        except ValueError as error:
            place = getattr(error, "pos", getattr(error, "start", None))
            why = "it is no JSON" + ("" if place is None else f" from place {place} on")
    return {"unreadable": why, **_of_text(body[:READ_BYTES].decode(errors="replace"))}


def _of_json(message: Any) -> dict[str, Any]:
    if isinstance(message, list) and len(message) == 3 and isinstance(message[1], dict):
        return {"run": _run(message[1])}
    events = message.get("events") if isinstance(message, dict) else None
    if isinstance(events, list):
        shown = [_event(item) for item in events[:MOST_EVENTS]]
        return {"events": shown, "number": len(events)}
    return {"unreadable": f"it is JSON, and no message of runs or events: its value is {_kind(message)}"}


def _of_text(text: str) -> dict[str, Any]:
    """What the beginning of a run, or events of any, tell as they are written by us."""
    if run := _BEGINNING_OF_A_RUN.match(text):
        return {"run": _matched(run)}
    if not text.startswith(_BEGINNING_OF_EVENTS):
        return {}
    found = (_matched(event) for event in _AN_EVENT.finditer(text))
    return {"events": [event for event, _ in zip(found, range(MOST_EVENTS), strict=False)]}


def _matched(found: re.Match[str]) -> dict[str, Any]:
    return {
        name: text if name in ("execution", "type") else int(text)
        for name, text in found.groupdict().items()
        if text is not None
    }


def _run(arguments: Mapping[str, Any]) -> dict[str, Any]:
    spec = arguments.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    return _present(
        execution=_uuid(arguments.get("execution")),
        **_each(arguments, ("attempt", "generation", "flags", "queued"), _number),
        job_id=_uuid(spec.get("job_id")),
        owner_id=_number(spec.get("owner_id")),
    )


def _event(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"unreadable": f"it is {_kind(item)}"}
    runs = item.get("runs")
    runs = runs if isinstance(runs, list) else []
    return _present(
        type=_formed(item.get("type"), _TYPE),
        execution=_uuid(item.get("execution")),
        **_each(item, ("attempt", "generation", "exit_code"), _number),
        **_each(item, ("at", "queued_at", "started_at", "due_at"), _instant),
        **_each(item, ("worker", "reason"), lambda value: _formed(value, _WORD)),
        runs=[_run_of_many(run) for run in runs[:MOST_RUNS]] or None,
        number_of_runs=len(runs) or None,
    )


def _run_of_many(run: Any) -> list[Any]:
    if not isinstance(run, list) or len(run) != 3:
        return [HIDDEN]
    return [_uuid(run[0]), _number(run[1]), _number(run[2])]


def _each(of: Mapping[str, Any], names: Iterable[str], form: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: form(of.get(name)) for name in names}


def _present(**found: Any) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


def _formed(value: Any, form: str | re.Pattern[str]) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(form, value) else None


def _uuid(value: Any) -> str | None:
    return _formed(value, _UUID)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18 else None


def _instant(value: Any) -> str | None:
    try:
        return datetime.fromisoformat(value).isoformat()
    except (ValueError, TypeError):
        return None


def _kind(value: Any) -> str:
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, str):
        return f"a text of {len(value)} characters"
    return "null" if value is None else "true or false" if isinstance(value, bool) else "a number"
