from executions.bus.consuming import BatchConsumer
from executions.management.consumer_command import ConsumerCommand
from executions.recorder import recorder


class Command(ConsumerCommand):
    help = (
        "Run a recorder: turns events into states, retries and next occurrences. Start as many as you like."
    )
    service = "recorder"

    def consumer(self) -> BatchConsumer:
        return recorder()
