from executions.auditor import auditor
from executions.bus.consuming import BatchConsumer
from executions.management.consumer_command import ConsumerCommand


class Command(ConsumerCommand):
    help = "Run an auditor: appends every event to the history. Start as many as you like."
    service = "auditor"

    def consumer(self) -> BatchConsumer:
        return auditor()
