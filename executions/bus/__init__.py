"""The message bus: kombu and amqp in one place.

    beat ──runs──▶ queue "runs" ──▶ worker
    beat, worker ──events──▶ exchange "punctual.events" ─┬─▶ queue "punctual.recorder"
                                                         └─▶ queue "punctual.auditor"

The same code speaks to RabbitMQ (quorum queues, publisher confirms) and to Redis through
kombu's transport. A failure to reach the broker is a BusUnavailable.
"""
