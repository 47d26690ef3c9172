"""URLs of servers of which there are several."""

from __future__ import annotations

import pytest

from executions.addresses import Kind, RedisAddress, each_host, hosts_of, read_redis
from executions.bus.topology import kombu_url, transport_options


def test_one_server_is_read_by_the_client_itself() -> None:
    for url in ("redis://u:p@h:1/2?socket_timeout=3", "rediss://h", "unix:///tmp/s?db=1"):
        assert read_redis(url) == RedisAddress(Kind.SINGLE, url)


def test_sentinels_have_hosts_a_name_and_perhaps_a_login_of_their_own() -> None:
    found = read_redis("rediss+sentinel://u:p%40@a:1,b/our%20jobs/2?ssl_ca_certs=/ca&sentinel_password=s")
    assert found.kind is Kind.SENTINEL
    assert found.url == "rediss://u:p%40@a:1/2?ssl_ca_certs=%2Fca"
    assert found.hosts == (("a", 1), ("b", 26379))
    assert found.primary == "our jobs"
    assert found.sentinel_login == (("password", "s"),)


def test_a_cluster_is_known_by_any_of_its_nodes() -> None:
    found = read_redis("redis+cluster://:p@a,[::1]:7001")
    assert (found.kind, found.url) == (Kind.CLUSTER, "redis://:p@a:6379/")
    assert found.hosts == (("a", 6379), ("::1", 7001))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis+sentinel://u:secret@a,b", "by which name"),
        ("redis+cluster://u:secret@a/1", "no numbered databases"),
        ("redis+cluster://u:secret@a,", "no host"),
        ("redis+cluster://u:secret@a:0", "1 to 65535"),
        ("redis+cluster://u:secret@a:x", "1 to 65535"),
    ],
)
def test_what_is_none_is_refused_without_its_password(url: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as refused:
        read_redis(url)
    assert "secret" not in str(refused.value)


def test_hosts_of_a_broker_become_urls_of_their_own() -> None:
    assert hosts_of("amqps://a,b:1//") == (("a", 5671), ("b", 1))
    assert each_host("pyamqp://u:p@a,b:1//?x=1") == ["pyamqp://u:p@a:5672//?x=1", "pyamqp://u:p@b:1//?x=1"]
    assert kombu_url("amqp://u:p@a,b:1/v") == "pyamqp://u:p@a:5672/v;pyamqp://u:p@b:1/v"
    for url in ("pyamqp://h//", "redis://h/1", "amqps://u:p@h/%2Fx", "redis+socket:///s?virtual_host=1"):
        assert kombu_url(url) == url


def test_a_broker_with_sentinels_is_asked_for_by_name() -> None:
    url = "redis+sentinel://:p@a,b:2/jobs/1?sentinel_password=s"
    assert kombu_url(url) == "sentinel://:p@a:26379/1;sentinel://:p@b:2/1"
    options = transport_options(url, "ours")
    assert options["master_name"] == "jobs"
    assert options["sentinel_kwargs"]["password"] == "s"
    assert options["global_keyprefix"] == "ours.bus."
    assert "master_name" not in transport_options("redis://h/1", "ours")
