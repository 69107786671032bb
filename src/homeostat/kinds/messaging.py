"""Queues and their subscriptions."""

from homeostat.kinds.base import INTEGER, LIST, MAP, TEXT, Kind

QUEUE = Kind(
    name="queue",
    description="A queue of messages.",
    fixed={
        "name": TEXT,
    },
    mutable={
        "metadata": MAP,
    },
    reported={
        "href": TEXT,
    },
    operations={"post": "With {messages: [{body, ttl (seconds)}], make (a queue that is not there)}."},
    id_field="name",
)
SUBSCRIPTION = Kind(
    name="subscription",
    description="A notification of a subscriber about the messages of a queue.",
    fixed={
        "queue_name": TEXT,
    },
    mutable={
        "subscriber": TEXT,
        "ttl": INTEGER,
        "options": MAP,
    },
)
SIGNED_QUEUE_URL = Kind(
    name="signed_queue_url",
    description="A signed URL that lets its holder use a queue for a time.",
    fixed={
        "queue": TEXT,
        "paths": LIST,
        "ttl": INTEGER,
        "methods": LIST,
    },
    reported={
        "signature": TEXT,
        "expires": TEXT,
        "project": TEXT,
    },
    notes=("The cloud does not store it: its id contains everything.",),
)
WORKFLOW_TRIGGER = Kind(
    name="workflow_trigger",
    description="A subscription of a queue that runs a workflow.",
    fixed={
        "queue_name": TEXT,
    },
    mutable={
        "ttl": INTEGER,
        "workflow_id": TEXT,
        "params": MAP,
        "input": MAP,
    },
    notes=("It is a subscription that runs a workflow.",),
)

KINDS = (
    QUEUE,
    SUBSCRIPTION,
    SIGNED_QUEUE_URL,
    WORKFLOW_TRIGGER,
)
