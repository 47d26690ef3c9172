"""Sessions get places of their own in the real services, and leave nothing there (tests/services.py)."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import redis
from kombu import Connection

from scheduler_project.kernel.clock import utcnow
from scheduler_project.places.virtual_hosts import virtual_hosts_of
from tests import services

ROOT = Path(__file__).parents[2]
HOLD = """
from tests import services
with services.redis_database() as url:
    print(url, flush=True)
    input()
"""


def virtual_host_names() -> list[str]:
    return virtual_hosts_of(services.broker_url()).names()


def test_two_sessions_never_meet_and_leave_nothing() -> None:
    with services.own_services() as one, services.own_services() as other:
        assert not set(one.as_environment().values()) & set(other.as_environment().values())
        put_something_into(one)
        assert_is_empty(other)
        names = {one.database_url.rpartition("/")[2], other.database_url.rpartition("/")[2]}
        assert names <= set(services.database_names())
        assert names <= set(virtual_host_names())
    assert not names & set(services.database_names())
    assert not names & set(virtual_host_names())


def test_a_program_that_is_no_session_leaves_no_database_either() -> None:
    make = "from tests.system import migrated_database; print(migrated_database())"
    done = subprocess.run([sys.executable, "-c", make], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.strip() not in services.database_names()


def put_something_into(place: services.Services) -> None:
    with psycopg.connect(place.database_url) as connection:
        connection.execute("CREATE TABLE mine (id int)")
    with redis.Redis.from_url(place.redis_url) as client:
        client.set("mine", "1")
    with Connection(place.broker_url) as broker:
        queue = broker.SimpleQueue("mine")
        queue.put("1")
        queue.put("2")
        assert queue.get(timeout=10).payload == "1"  # so the other is there as well


def assert_is_empty(place: services.Services) -> None:
    with psycopg.connect(place.database_url) as connection:
        assert connection.execute("SELECT to_regclass('mine')").fetchone() == (None,)
    with redis.Redis.from_url(place.redis_url) as client:
        assert client.dbsize() == 0
    with Connection(place.broker_url) as broker:
        assert broker.SimpleQueue("mine").qsize() == 0


def test_a_database_goes_although_somebody_is_still_connected() -> None:
    with services.database() as url:
        connection = psycopg.connect(url)

    with connection, pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    assert url.rpartition("/")[2] not in services.database_names()


def test_a_redis_database_is_given_back_empty() -> None:
    with services.redis_database() as url, redis.Redis.from_url(url) as client:
        client.set("mine", "1")

    with redis.Redis.from_url(url) as client:
        assert client.get("mine") is None


def test_a_session_inside_a_session_sees_the_same_holders() -> None:
    with services.redis_database() as outer, services.redis_database(outer) as inner:
        assert inner != outer
        with services.redis_database() as third:
            assert third not in (outer, inner)


def test_a_redis_database_with_somebodys_data_is_not_taken() -> None:
    with ExitStack() as stack:
        taken = stack.enter_context(services.redis_database())
        client = stack.enter_context(redis.Redis.from_url(taken))
        client.set("somebodys", "data")
        holder = stack.enter_context(redis.Redis.from_url(services.with_path(taken, "0")))
        key = f"punctual-test:holder-of-database:{taken.rpartition('/')[2]}"
        token = holder.get(key)
        holder.delete(key)  # as if it had never been ours

        other = stack.enter_context(services.redis_database())

        holder.set(key, token)
        assert other != taken
        assert client.get("somebodys") == b"data"


def test_a_killed_session_frees_its_redis_database_at_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout
        url = session.stdout.readline().strip()
        with redis.Redis.from_url(url) as client:
            client.set("left", "behind")
        session.kill()

    with ExitStack() as stack:
        taken = ""
        while taken != url:  # the lowest free number comes first; others may hold and free theirs meanwhile
            taken = stack.enter_context(services.redis_database(wait_s=1))
        with redis.Redis.from_url(url) as client:
            assert client.get("left") is None


def test_what_killed_sessions_left_is_swept_and_what_is_young_stays() -> None:
    old = services.unique_name(utcnow() - timedelta(hours=4))
    hosts = virtual_hosts_of(services.broker_url())
    hosts.add(old)
    with services.database(old), services.database() as young:
        gone = services.sweep_leftovers()

        assert {f"database {old}", f"virtual host {old}"} <= set(gone)
        assert young.rpartition("/")[2] in services.database_names()
        assert old not in services.database_names() + hosts.names()
