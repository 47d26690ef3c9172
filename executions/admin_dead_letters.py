"""The admin's page of dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse

from executions.admin_cells import NOTHING, time_cell
from executions.bus.connection import BusUnavailable
from executions.bus.dead_letters import Letter
from executions.dead_letters import (
    DONE,
    MOST,
    Action,
    InHand,
    Settled,
    look,
    may_look,
    may_settle,
    plain,
    settle,
)
from executions.letter_texts import body_text, header_texts, reason_text

_DONE = {Action.REPLAY: "replayed", Action.DISCARD: "discarded"}
PAGE = "admin/executions/dead_letters.html"


def dead_letters_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """GET: the oldest of them. POST with an ``action``: replay or discard the ``chosen``, or ``every`` one of
    those that were ``shown``; discarding asks first. ``context``: what all pages of the admin have.
    """
    if not may_look(request.user):
        raise PermissionDenied
    if request.method == "POST":
        return _settle(request, context)
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "POST"])
    try:
        found = look(request.user)
    except (BusUnavailable, InHand) as error:
        return _page(request, context, {"away": error.message}, status=503)
    letters = [_shown(letter) for letter in found.letters]
    return _page(request, context, {"letters": letters, "more": found.more})


def _settle(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    if not may_settle(request.user):
        raise PermissionDenied
    given = request.POST
    ids = given.getlist("shown" if "every" in given else "chosen")[:MOST]
    action = Action(given["action"]) if given.get("action") in set(Action) else None
    if action is None or not ids:
        messages.warning(request, "Choose some of the dead letters, and what to do with them.")
    elif action is Action.DISCARD and "confirmed" not in given:
        return _page(request, context, {"asked": ids, "title": "Discard dead letters?"})
    else:
        try:
            _tell(request, action, settle(ids, action, request.user))
        except (BusUnavailable, InHand) as error:
            return _page(request, context, {"away": error.message, "undone": True}, status=503)
    return HttpResponseRedirect(request.path)


def _tell(request: HttpRequest, action: Action, settled: Sequence[Settled]) -> None:
    done = sum(each.outcome in DONE for each in settled)
    if done:
        letters = "1 dead letter was" if done == 1 else f"{done} dead letters were"
        messages.success(request, f"{letters} {_DONE[action]}.")
    undone = [each for each in settled if each.outcome not in DONE]
    for detail in dict.fromkeys(each.detail for each in undone):
        number = sum(each.detail == detail for each in undone)
        messages.error(request, f"Not {_DONE[action]}: {number}. {plain(detail)}")


def _page(
    request: HttpRequest, context: dict[str, Any], own: dict[str, Any], status: int = 200
) -> HttpResponse:
    common = {**context, "title": "Dead letters", "may_settle": may_settle(request.user), "most": MOST}
    return TemplateResponse(request, PAGE, {**common, **own}, status=status)


def _shown(letter: Letter) -> dict[str, Any]:
    since = letter.since
    return {
        "id": letter.id,
        "queue": plain(letter.queue),
        "reason": reason_text(letter) or NOTHING,
        "since": time_cell(since) if since else plain(letter.buried_at) or NOTHING,
        "body": body_text(letter),
        "headers": header_texts(letter),
    }
