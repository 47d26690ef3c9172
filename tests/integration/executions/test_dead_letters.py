"""Dead letters: looking loses none, and what is chosen is replayed or discarded once, over both brokers."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import QuerySet
from kombu import Exchange, Queue
from redis import Redis

from access.policy import Forbidden, System
from access.trail.models import ChangeRecord
from executions import dead_letters
from executions.bus.connection import BusUnavailable, connect
from executions.bus.dead_letters import COUNTED_RETURNS
from executions.bus.dead_queue import dead_queue
from executions.bus.topology import DEAD, RECORDER, event_queue
from executions.dead_letters import Action, InHand, Outcome, look, settle
from executions.letter_texts import body_text, header_texts
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.texts import control_character
from scheduler_project.operating.exits import Exit
from tests.integration.executions.brokers import assert_waiting, purge, use_broker
from tests.integration.executions.letters import buried, bury
from tests.integration.proxy import TcpProxy

pytestmark = pytest.mark.django_db
SOMEBODY = System("a test")
LIMIT = 20  # RabbitMQ 4's own, where nothing else is said
DECLARED_BY_OTHERS = Queue(
    DEAD,
    Exchange(DEAD, type="direct"),
    routing_key=DEAD,
    queue_arguments={"x-queue-type": "quorum", "x-delivery-limit": LIMIT},
)


def taken(queue: str) -> list[tuple[bytes, dict[str, Any]]]:
    """What a consumer of the queue would get."""
    found = []
    with connect() as opened, opened.channel() as channel:
        bound: Any = event_queue(queue).bind(channel)
        while (message := bound.get(accept=None)) is not None:
            body = message.body if isinstance(message.body, bytes) else message.body.encode()
            headers = {name: value for name, value in message.headers.items() if name != COUNTED_RETURNS}
            found.append((body, headers))
            message.ack()
    return found


def records() -> QuerySet[ChangeRecord]:
    return ChangeRecord.objects.filter(content_type__model="deadletter")


def test_a_hundred_looks_lose_none_where_the_queue_drops_what_came_back_twenty_times(broker: str) -> None:
    first = bury(b"1", b"2", b"3", declared=DECLARED_BY_OTHERS)
    for _ in range(100):
        with dead_queue(100) as found:
            assert len(found.letters) == 3
    assert [letter.id for letter in buried()] == [letter.id for letter in first]
    assert_waiting(3, DEAD)


def test_what_somebody_looks_at_is_there_for_the_next(broker: str) -> None:
    bury(b"1", b"2")
    assert look(SOMEBODY, 1).more
    whole = look(SOMEBODY, 2)
    assert [letter.body for letter in whole.letters] == [b"1", b"2"]
    assert not whole.more


def test_one_that_is_chosen_goes_back_as_it_was_and_the_others_stay(broker: str) -> None:
    first, second, third = bury(b"1", b"2", b"3", priority_of_sender="7")
    (done,) = settle([second.id], Action.REPLAY, SOMEBODY)
    assert done.outcome is Outcome.REPLAYED
    assert taken(RECORDER) == [(b"2", {"priority_of_sender": "7"})]
    assert [letter.id for letter in buried()] == [first.id, third.id]
    (gone,) = settle([second.id], Action.REPLAY, SOMEBODY)
    assert gone.outcome is Outcome.NOT_THERE
    assert taken(RECORDER) == []
    (record,) = records()
    assert (record.who, record.what, record.object_pk) == ("a test", "replayed", second.id)
    assert record.changes["queue"] == [None, RECORDER]


def test_fifty_are_discarded_at_once_and_on_record(broker: str) -> None:
    letters = bury(*(f"{number:02}".encode() for number in range(60)))
    settled = settle([letter.id for letter in letters[:50]], Action.DISCARD, SOMEBODY)
    assert {each.outcome for each in settled} == {Outcome.DISCARDED}
    assert [letter.id for letter in buried()] == [letter.id for letter in letters[50:]]
    assert records().filter(what="discarded").count() == 50
    assert taken(RECORDER) == []


def test_of_two_that_say_the_same_one_goes_for_each_time_it_is_chosen(broker: str) -> None:
    letter, other = bury(b"same", b"same")
    assert letter.id == other.id
    assert [each.outcome for each in settle([letter.id], Action.REPLAY, SOMEBODY)] == [Outcome.REPLAYED]
    assert len(buried()) == len(taken(RECORDER)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_replay_the_same_at_once_send_it_once_and_the_other_is_told(broker: str) -> None:
    letters = bury(*(str(number).encode() for number in range(10, 30)))
    ids = [letter.id for letter in letters]
    start = threading.Barrier(4)

    def replay(name: str) -> list[Outcome]:
        try:
            start.wait()
            return [each.outcome for each in settle(ids, Action.REPLAY, System(name))]
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(replay, "abcd"))
    assert sorted(body for body, _ in taken(RECORDER)) == [letter.body for letter in letters]
    told = [outcome for answer in answers for outcome in answer]
    assert told.count(Outcome.REPLAYED) == 20
    assert told.count(Outcome.NOT_THERE) == 60
    assert records().count() == 20


@pytest.mark.django_db(transaction=True)
def test_who_waits_too_long_for_somebody_else_is_told(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(b"1")
    monkeypatch.setattr(dead_letters, "_LOCK_WITHIN", "100ms")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with dead_letters._alone():
            held.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(10)
    with pytest.raises(InHand):
        look(SOMEBODY)
    done.set()
    other.join()
    assert len(look(SOMEBODY).letters) == 1


def test_one_that_has_nowhere_to_go_back_to_stays_and_says_why(broker: str) -> None:
    bury(b"of nobody", queue_of_nobody="x")
    bury(b"of nothing", queue="")
    if broker == "rabbitmq":  # Redis knows of no queue but by what is in it
        bury(b"of what is gone", queue="no-such-queue")
    answers = {
        each.letter.body: (each.outcome, each.detail)
        for each in settle([letter.id for letter in buried()], Action.REPLAY, SOMEBODY)
        if each.letter
    }
    assert answers[b"of nobody"][0] is Outcome.REPLAYED
    assert answers[b"of nothing"] == (Outcome.LEFT, "It does not say which queue it came from.")
    if broker == "rabbitmq":
        assert "'no-such-queue'" in answers[b"of what is gone"][1]
    assert records().count() == 1


def test_a_broker_that_goes_away_between_two_is_told_and_none_is_lost(rabbitmq: TcpProxy) -> None:
    first, second = bury(b"1", b"2")
    before = records().count()
    replay = dead_letters._settle_one

    def cut_after_the_first(queue: Any, item: Any, *rest: Any) -> None:
        if item.letter.id == second.id:
            rabbitmq.cut()
        replay(queue, item, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dead_letters, "_settle_one", cut_after_the_first)
        answers = settle([first.id, second.id], Action.REPLAY, SOMEBODY)
    assert [each.outcome for each in answers] == [Outcome.REPLAYED, Outcome.UNKNOWN]
    assert records().count() == before + 1
    until = monotonic() + 10
    while [letter.id for letter in buried()] != [second.id]:
        assert monotonic() < until


def test_a_broker_that_is_away_is_said_to_be_soon(settings: Any, broker: str) -> None:
    settings.BROKER_URL = settings.BROKER_URL.partition("//")[0] + "//guest:guest@127.0.0.1:1//"
    asked_at = monotonic()
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        look(SOMEBODY)
    assert dead_letters.waiting() is None
    assert monotonic() - asked_at < 10


def test_there_are_none_where_the_queue_is_not_there_and_looking_makes_none(broker: str) -> None:
    assert look(SOMEBODY).letters == []
    if broker == "rabbitmq":
        with connect() as opened, pytest.raises(opened.channel_errors):
            opened.channel().queue_declare(DEAD, passive=True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "body",
    [
        b'{"env": {"A": "hunter2"}, "password": "hunter2", "x": 1}',
        b'{"env": {"X": "hunter2", "Y": 1',
        b"psql postgres://etl:hunter2@db/sales",
        b"[" * 50_000,
        b"\x1b]0;x\x07\xff",
        b"x" * 70_000 + b" password=hunter2",
    ],
)
def test_a_body_that_cannot_be_read_is_shown_by_its_length(broker: str, body: bytes) -> None:
    (letter,) = bury(body, authorization="Bearer hunter2hunter2", reason="KeyError: 'hunter2'")
    shown = json.loads(body_text(letter))
    assert set(shown) == {"bytes", "unreadable"}
    assert shown["bytes"] == len(body)
    assert "hunter2" not in body_text(letter) + str(header_texts(letter)) + told()
    settle([letter.id], Action.DISCARD, SOMEBODY)
    assert "hunter2" not in str(records().get(what="discarded").changes)


def test_what_is_no_message_of_kombu_s_is_shown_too(settings: Any) -> None:
    use_broker(settings, settings.REDIS_URL)
    purge()
    prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
    Redis.from_url(settings.REDIS_URL).lpush(f"{prefix}{DEAD}", b"nonsense")
    (letter,) = look(SOMEBODY).letters
    assert letter.body == b"nonsense"
    assert [each.outcome for each in settle([letter.id], Action.DISCARD, SOMEBODY)] == [Outcome.DISCARDED]
    assert look(SOMEBODY).letters == []


# Who may


def test_looking_and_settling_need_a_permission_each(broker: str) -> None:
    (letter,) = bury(b"1")
    user = User.objects.create_user("mia")
    with pytest.raises(Forbidden, match="view_deadletter"):
        look(user)
    user = _given(user, "view_deadletter")
    assert len(look(user).letters) == 1
    with pytest.raises(Forbidden, match="settle_deadletter"):
        settle([letter.id], Action.DISCARD, user)
    assert len(buried()) == 1
    user = _given(user, "settle_deadletter")
    assert settle([letter.id], Action.DISCARD, user)[0].outcome is Outcome.DISCARDED
    assert records().get(what="discarded").who == "mia"


def _given(user: User, codename: str) -> User:
    user.user_permissions.add(Permission.objects.get(codename=codename))
    return User.objects.get(pk=user.pk)


# The command


def told(*words: str) -> str:
    out = StringIO()
    call_command("dead_letters", *words, stdout=out)
    return out.getvalue()


def test_a_dead_letter_that_is_listed_does_not_command_the_terminal(broker: str) -> None:
    bury(b"\x1b]0;x", queue="\x1b[2J\u202e", reason="\x1b[31m", buried_at="\x07")
    listed = told()
    assert "1 dead letter;" in listed
    assert control_character(listed.replace("\n", "")) == ""


def test_the_command_settles_all_or_those_that_are_named(broker: str) -> None:
    _, second, _ = bury(b"1", b"2", b"3")
    assert "1 dead letter, 1 put back" in told(second.id, "--replay")
    assert "2 dead letters, 2 deleted" in told("--discard")
    assert [body for body, _ in taken(RECORDER)] == [b"2"]
    with pytest.raises(SystemExit) as ended:
        told(second.id, "--replay")
    assert ended.value.code == Exit.REFUSED
    assert "0 dead letters" in told()
    assert records().filter(who="manage.py dead_letters").count() == 3


def test_the_command_says_what_it_takes(broker: str) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        told("--limit", "0")
