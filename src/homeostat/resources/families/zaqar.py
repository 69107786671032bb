"""Types of messaging: queues, their subscriptions, and signed URLs for the use of queues."""

from typing import Any
from urllib.parse import urlencode

from homeostat.resources.base import Props, ResourceType, Thing, shortened
from homeostat.resources.rules import require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    ValueType,
    between,
    integer,
    length,
    link,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import Support

SUBSCRIBERS = ("http", "https", "mailto", "trust+http", "trust+https")
QUEUE_NAME_MAX = 64
FOR_EVER_S = 220_367_260_800
"""Seconds until about the year 9000, which means forever, as in Heat."""


class Queue(ResourceType):
    """A queue; its id is its name."""

    name = "OS::Zaqar::Queue"
    kind = "queue"
    support = Support(version="2014.2")
    description = "A queue of messages."
    properties = {
        "name": text("Name of the queue.", constraints=(length(None, QUEUE_NAME_MAX),)),
        "metadata": mapping("Metadata of the queue.", update=True),
    }
    attributes = {
        "queue_id": Attribute("Its id; use get_resource.", live=True, deprecated=True, field="id"),
        "href": Attribute("URL of the queue."),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return super().spec(values, shortened(physical_name, QUEUE_NAME_MAX))


class SignedQueueURL(ResourceType):
    """A signature for a queue; Zaqar does not store signatures, so the handle contains all of it."""

    name = "OS::Zaqar::SignedQueueURL"
    kind = "signed_queue_url"
    support = Support(version="8.0.0")
    description = "A signature that lets its holder use a queue for a time."
    properties = {
        "queue": text("Name of the queue.", required=True),
        "paths": listing("What may be used; without it the messages."),
        "ttl": integer("Seconds that it is valid; without it one day."),
        "methods": listing(
            "HTTP methods that may be used; without it GET.",
            items=text(constraints=(one_of("GET", "DELETE", "PATCH", "POST", "PUT"),)),
        ),
    }
    attributes = {
        "signature": Attribute("The signature."),
        "expires": Attribute("When it expires."),
        "paths": Attribute("What may be used.", ValueType.LIST),
        "methods": Attribute("HTTP methods that may be used.", ValueType.LIST),
        "project": Attribute("Project of the queue."),
        "query_str": Attribute("All of it as the query of a URL."),
    }

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "query_str":
            return super().attribute(thing, name)
        seen = thing.seen.properties
        if not seen.get("signature"):
            return None
        parts = {
            "signature": seen["signature"],
            "expires": seen.get("expires"),
            "paths": ",".join(seen.get("paths") or ()),
            "methods": ",".join(seen.get("methods") or ()),
            "project_id": seen.get("project"),
            "queue_name": thing.properties["queue"],
        }
        return urlencode(parts)


def _queue() -> Property:
    return link("The queue.", "zaqar.queue", required=True)


def _ttl() -> Property:
    return integer("Seconds that it lasts.", default=FOR_EVER_S, update=True, constraints=(between(60),))


class Subscription(ResourceType):
    name = "OS::Zaqar::Subscription"
    kind = "subscription"
    support = Support(version="8.0.0")
    description = "Notifies a subscriber of the messages of a queue."
    properties = {
        "queue_name": _queue(),
        "subscriber": text(
            "Whom to tell: mailto: and an address, or the URL of a web hook.", required=True, update=True
        ),
        "ttl": _ttl(),
        "options": mapping("Further options.", update=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        subscriber = values.get("subscriber")
        known = subscriber is UNKNOWN or str(subscriber).partition(":")[0] in SUBSCRIBERS
        require(known, f"a subscriber begins with one of {', '.join(SUBSCRIBERS)} and a colon", (*path, "subscriber"))


class MistralTrigger(ResourceType):
    name = "OS::Zaqar::MistralTrigger"
    kind = "workflow_trigger"
    support = Support(version="8.0.0")
    description = "Runs a workflow for each message of a queue."
    properties = {
        "queue_name": _queue(),
        "ttl": _ttl(),
        "workflow_id": link("The workflow.", "mistral.workflow", required=True, update=True),
        "params": mapping("Parameters of the execution.", default={}, update=True),
        "input": mapping("Input of the workflow.", default={}, update=True),
    }


TYPES: list[type[ResourceType]] = [Queue, SignedQueueURL, Subscription, MistralTrigger]
