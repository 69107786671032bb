"""Stacks and events in the format of the API."""

import datetime
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, overload

from homeostat.api.context import RequestContext
from homeostat.api.http.inputs import quoted
from homeostat.api.orchestration.models.events import Event, EventItem
from homeostat.api.orchestration.models.resources import Unhealthy
from homeostat.api.orchestration.models.stacks import Link, Lock, StackDetail, StackIdentity, StackSummary
from homeostat.model.marks import UnhealthyMark
from homeostat.model.status import Action, joined
from homeostat.resources.nested import public_properties
from homeostat.resources.registry import shown_id
from homeostat.services.graphs import Graph
from homeostat.store.database import Transaction
from homeostat.store.events import event_id
from homeostat.store.schema.rows import EventRow, StackRow
from homeostat.store.stacks import stacks

Wire = dict[str, Any]
NO_DESCRIPTION = "No description"


@overload
def at(seconds: float) -> str: ...


@overload
def at(seconds: float | None) -> str | None: ...


def at(seconds: float | None) -> str | None:
    """Format seconds since the epoch as `YYYY-MM-DDTHH:MM:SSZ`; None stays None."""
    return None if seconds is None else _second(int(seconds))


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    """Format a time; cached, since resources created together have the same times."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def precisely(seconds: float) -> str:
    """Format a time with microseconds, for times that clients compare."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def link(rel: str, href: str) -> Link:
    return {"href": href, "rel": rel}


def stack_identity(context: RequestContext, stack: Any) -> StackIdentity:
    return {"id": stack.id, "links": [link("self", context.stack_url(stack))]}


def stack_summary(context: RequestContext, stack: StackRow) -> StackSummary:
    """Build an item of the stack list. The description is always empty: it would require every stack's template."""
    return {
        "id": stack.id,
        "links": [link("self", context.stack_url(stack))],
        "stack_name": stack.name,
        "description": "",
        "stack_status": joined(stack.action, stack.status),
        "stack_status_reason": stack.reason,
        "creation_time": at(stack.created_at),
        "updated_time": at(stack.updated_at),
        "deletion_time": at(stack.deleted_at),
        "stack_owner": stack.owner,
        "parent": stack.parent_id,
        "stack_user_project_id": stack.user_project or stack.project,
        "tags": stack.tags or None,
    }


def stack_detail(context: RequestContext, tx: Transaction, stack: StackRow, graph: Graph) -> StackDetail:
    """Build a stack without its outputs.

    Args:
        graph: The newest revision that is not empty.
    """
    compiled = graph.compiled
    description = compiled.description if compiled is not None else NO_DESCRIPTION
    return {
        **stack_summary(context, stack),
        "description": description,
        "template_description": description,
        "parameters": stack_parameters(stack, graph),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stacks.timeout_mins_of(tx, stack),
        "tags": stack.tags or [],
        "template_source": stack.template_source,
        "lock": lock_shown(stack),
    }


def lock_shown(stack: Any) -> Lock | None:
    """Return the lock of a stack; None if unlocked."""
    if stack.lock is None:
        return None
    lock = stack.lock
    return {
        "level": lock.get("level"),
        "owner": lock.get("owner"),
        "reason": lock.get("reason"),
        "locked_at": at(lock.get("at")),
        "expires_at": at(lock.get("expires_at")),
    }


def stack_parameters(stack: StackRow, graph: Graph) -> dict[str, str]:
    if graph.compiled is not None:
        return {name: parameter.shown for name, parameter in graph.compiled.parameters.items()}
    return {"OS::project_id": stack.project, "OS::stack_id": stack.id, "OS::stack_name": stack.name}


def event_seq(text: str) -> int | None:
    """Return the number of the event with this id; None for an invalid id."""
    try:
        return int(str(uuid.UUID(text))[-12:], 16)
    except ValueError:
        return None


def event_item(context: RequestContext, event: EventRow, stack: StackRow, root: StackRow | None = None) -> EventItem:
    """Build an item of an event list.

    Args:
        root: The top stack, if events of several stacks are listed.
    """
    identity = event_id(stack.id, event.seq)
    stack_url = context.stack_url(stack)
    resource_url = f"{stack_url}/resources/{quoted(event.name)}"
    links = [
        link("self", f"{resource_url}/events/{identity}"),
        link("resource", resource_url),
        link("stack", stack_url),
    ]
    if root is not None:
        links.append(link("root_stack", context.stack_url(root)))
    return {
        "id": identity,
        "event_time": at(event.at),
        "resource_name": event.name,
        "logical_resource_id": event.name,
        "physical_resource_id": shown_id(event.type, event.handle or "") or None,
        "resource_status": joined(event.action, event.status),
        "resource_status_reason": event.reason,
        "requested_by": event.requested_by or None,
        "request_id": event.request_id or None,
        "links": links,
    }


def event_detail(context: RequestContext, event: EventRow, stack: StackRow, properties: Mapping[str, Any]) -> Event:
    return {
        **event_item(context, event, stack),
        "resource_type": event.type,
        "resource_properties": public_properties(properties),
    }


def shown_mark(mark: UnhealthyMark) -> Unhealthy:
    """Build the mark of an unhealthy resource."""
    return {
        "reason": mark.reason,
        "reported_by": mark.by,
        "reporter": mark.reporter,
        "since": at(mark.since),
        "expires_at": at(mark.expires_at),
    }


def is_deleted(stack: StackRow) -> bool:
    """Return whether the stack is deleted."""
    return stack.deleted_at is not None and stack.action == Action.DELETE
