"""The services that the tests are given are real, empty and this run's own."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import redis
from kombu import Connection
from sqlalchemy import create_engine, text


@pytest.mark.redis
def test_redis_is_private(redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    assert client.ping()
    assert urlsplit(redis_url).port != 6379


@pytest.mark.postgres
def test_postgres_is_a_database_of_this_run(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
    engine.dispose()
    assert name.startswith("graphrun_test_")


@pytest.mark.rabbitmq
def test_rabbitmq_carries_a_message(rabbitmq_url: str, rabbitmq_queues: list[str]) -> None:
    name = f"graphrun-services-{urlsplit(rabbitmq_url).path.strip('/')}"
    rabbitmq_queues.append(name)
    with Connection(rabbitmq_url) as connection, connection.SimpleQueue(name) as queue:
        queue.put("hello")
        message = queue.get(timeout=5)
        message.ack()
        assert message.payload == "hello"
