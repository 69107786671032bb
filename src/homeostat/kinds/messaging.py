"""Queues and their subscriptions."""

from homeostat.kinds.base import TEXT, Kind

KINDS = (
    Kind(
        "queue",
        "A queue of messages.",
        reported={"href": TEXT},
        operations={"post": "With {messages: [{body, ttl (seconds)}], make (a queue that is not there)}."},
        id_field="name",
    ),
    Kind("subscription", "A notification of a subscriber about the messages of a queue."),
    Kind(
        "signed_queue_url",
        "A signed URL that lets its holder use a queue for a time.",
        reported={"signature": TEXT, "expires": TEXT, "project": TEXT},
        notes=("The cloud does not store it: its id contains everything.",),
    ),
    Kind(
        "workflow_trigger",
        "A subscription of a queue that runs a workflow.",
        notes=("It is a subscription that runs a workflow.",),
    ),
)
