from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from executions.bus.connection import broker_errors
from executions.store import Store
from tests.integration.broker_proxies import AmqpProxy
from tests.integration.executions.brokers import purge, use_broker


@pytest.fixture(params=["rabbitmq", "redis"])
def broker(request: pytest.FixtureRequest, settings: Any, store: Store) -> Iterator[str]:
    if request.param == "redis":
        use_broker(settings, settings.REDIS_URL)
    purge()
    yield str(request.param)
    broker_errors.cache_clear()


@pytest.fixture
def rabbitmq(settings: Any) -> Iterator[AmqpProxy]:
    """A proxy before RabbitMQ, through which everything goes."""
    address = urlsplit(settings.BROKER_URL.replace("pyamqp", "amqp"))
    proxy = AmqpProxy(address.hostname or "", address.port or 5672)
    use_broker(settings, settings.BROKER_URL.replace(f":{address.port or 5672}", f":{proxy.port}"))
    purge()
    yield proxy
    proxy.let_go()
    proxy.close()
    broker_errors.cache_clear()
