"""Actions on the resources and events of stacks."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from homeostat.api.cloudformation.context import Action, ActionContext, arn_of
from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.paging import page_of, whole
from homeostat.api.orchestration.inventory import Entry, Inventory
from homeostat.api.orchestration.resource_parts import some_at_a_time
from homeostat.api.orchestration.views import event_detail, event_seq
from homeostat.builtin import access_keys, member_reports
from homeostat.builtin.access_keys import KeyHolder
from homeostat.builtin.group_metadata import instance_metadata
from homeostat.builtin.signals import metadata_of
from homeostat.model.errors import Rejected
from homeostat.model.world import Resource
from homeostat.store import events
from homeostat.store.builtin import records
from homeostat.store.database import Transaction
from homeostat.store.events import event_id
from homeostat.store.schema.rows import EventRow, StackRow
from homeostat.store.stacks import stacks, views

Shown = dict[str, Any]


def describe_resource(action: ActionContext) -> Any:
    """Describe a resource with its metadata, which agents on servers read."""
    name = action.parameters.needed("LogicalResourceId")
    with action.context.db.read() as tx:
        stack = action.stack(tx)
        _check_stack_user(action, tx, stack, name)
        at = access_keys.location_of(tx, action.holder, stack.id, name)
        resource = name if at is None else at.group
        inventory = _inventory(action, tx, stack, [resource])
        entry = inventory.entry(resource)
        if entry.row is None:
            raise Rejected("ResourceNotAvailable", f"The Resource ({name}) is not available: it is not begun yet.")
        metadata = _metadata(action, tx, stack, entry.row) if at is None else instance_metadata(tx, stack.id, at)
        if metadata is None:
            raise Rejected("EntityNotFound", f"The Resource ({name}) could not be found in Stack {stack.name}.")
        fields = _shown(action, inventory, entry, time="LastUpdatedTimestamp")
    return {"StackResourceDetail": {**fields, "Description": entry.description, "Metadata": json.dumps(metadata)}}


def _check_stack_user(action: ActionContext, tx: Transaction, stack: StackRow, name: str) -> KeyHolder | None:
    """Check that a server or user created by a template may read this resource.

    Returns:
        The server or user; None for ordinary callers.

    Raises:
        Rejected: Forbidden.
    """
    if action.holder is None:
        return action.context.check_stack_user(tx, stack, name)
    if not access_keys.may_read(tx, action.holder, stack.id, name):
        raise Rejected("Forbidden", f"The key of {action.holder.name} does not reach {name} of {stack.name}.")
    return action.holder


def _metadata(action: ActionContext, tx: Transaction, stack: StackRow, row: Resource) -> Mapping[str, Any]:
    """Return the resource's metadata; a server that is being replaced still gets its own."""
    holder = action.holder
    holder_row = holder.owner if holder is not None and holder.is_server else row
    return metadata_of(tx, stack.project, holder_row, stack.parent_key)


def describe_resources(action: ActionContext) -> Any:
    """Describe resources of a stack, given by its name or by the physical id of any of its things."""
    wanted = action.parameters.get("LogicalResourceId")
    with action.context.db.read() as tx:
        stack = _stack_of(action, tx)
        if wanted is not None:
            inventory = _inventory(action, tx, stack, [wanted])
            return {"StackResources": [_described(action, inventory, inventory.entry(wanted))]}

    return {"StackResources": whole(some_at_a_time(action.context, stack.id, partial(_described, action)))}


def _described(action: ActionContext, inventory: Inventory, entry: Entry) -> Shown:
    return {**_shown(action, inventory, entry, time="Timestamp"), "Description": entry.description}


def _stack_of(action: ActionContext, tx: Transaction) -> StackRow:
    parameters = action.parameters
    handle = parameters.get("PhysicalResourceId")
    if (handle is None) == (parameters.get("StackName") is None):
        code = "MissingParameter" if handle is None else "InvalidParameterCombination"
        raise Refused(code, "Give StackName or PhysicalResourceId, one of them.")
    if handle is None:
        return action.stack(tx)
    rows = [stacks.get(tx, id) for id in {owner.stack_id for owner in records.owners_of(tx, [handle])}]
    visible = [row for row in rows if row is not None and action.context.reaches(row)]
    if len(visible) > 1:
        raise Rejected("HTTPBadRequest", f"{len(visible)} stacks have the resource {handle}: give StackName instead.")
    if not visible:
        raise Rejected("EntityNotFound", f"The Resource ({handle}) could not be found.")
    return visible[0]


def list_resources(action: ActionContext) -> Any:
    with action.context.db.read() as tx:
        stack = action.stack(tx)

    def show(inventory: Inventory, entry: Entry) -> Shown:
        fields = _shown(action, inventory, entry, time="LastUpdatedTimestamp")
        return {name: fields[name] for name in fields if name not in ("StackId", "StackName")}

    return {"StackResourceSummaries": whole(some_at_a_time(action.context, stack.id, show))}


def _inventory(
    action: ActionContext, tx: Transaction, stack: StackRow, names: Sequence[str] | None = None
) -> Inventory:
    return Inventory(tx, stack, action.context.service.graphs.wanted(tx, stack), names)


def _shown(action: ActionContext, inventory: Inventory, entry: Entry, *, time: str) -> Shown:
    """Return the fields that all descriptions of a resource have.

    Args:
        time: Name of the field for the last change.
    """
    wire = inventory.wire(action.context, entry)
    return {
        "StackId": arn_of(inventory.stack),
        "StackName": inventory.stack.name,
        "LogicalResourceId": entry.name,
        "PhysicalResourceId": wire["physical_resource_id"],
        "ResourceType": entry.type,
        "ResourceStatus": wire["resource_status"],
        "ResourceStatusReason": wire["resource_status_reason"],
        time: wire["updated_time"],
    }


def describe_events(action: ActionContext) -> Any:
    """List events, newest first, of one stack or of all live root stacks."""
    by_id: dict[str, StackRow] = {}
    properties: dict[str, Mapping[str, Any]] = {}

    def page(tx: Transaction, marker: str | None, limit: int) -> list[EventRow]:
        by_id.update((row.id, row) for row in _stacks_of(action, tx))
        items = events.page(tx, list(by_id), after=_after(marker), newest_first=True, limit=limit)
        properties.clear()
        for stack_id in {event.stack_id for event in items}:
            names = {event.name for event in items if event.stack_id == stack_id}
            rows, _ = views.resources(tx, stack_id, names)
            properties.update((key, row.properties) for key, row in rows.items())
        return items

    def show(_: Transaction, event: EventRow) -> Shown:
        return _event(action, event, by_id[event.stack_id], properties)

    items, following = page_of(action, page, show, lambda event: event_id(event.stack_id, event.seq))
    return {"StackEvents": items, **following}


def _after(marker: str | None) -> int | None:
    seq = event_seq(marker) if marker is not None else None
    if marker is not None and seq is None:
        raise Refused("InvalidParameterValue", "NextToken is the one of the answer before.")
    return seq


def _stacks_of(action: ActionContext, tx: Transaction) -> list[StackRow]:
    if action.parameters.get("StackName") is not None:
        return [action.stack(tx)]
    hidden = action.context.service.hidden_tags
    return views.stacks_page(tx, views.Listing(action.context.project, hidden_tags=hidden))


def _event(
    action: ActionContext, event: EventRow, stack: StackRow, properties: Mapping[str, Mapping[str, Any]]
) -> Shown:
    wire = event_detail(action.context, event, stack, properties.get(event.key, {}))
    return {
        "EventId": wire["id"],
        "StackId": arn_of(stack),
        "StackName": stack.name,
        "LogicalResourceId": wire["resource_name"],
        "PhysicalResourceId": wire["physical_resource_id"],
        "ResourceType": wire["resource_type"],
        "ResourceStatus": wire["resource_status"],
        "ResourceStatusReason": wire["resource_status_reason"],
        "ResourceProperties": json.dumps(wire["resource_properties"]),
        "Timestamp": wire["event_time"],
    }


def signal_resource(action: ActionContext) -> Any:
    """Take the report of a member to its group. The group may wait for reports before its next batch."""
    parameters = action.parameters
    name, member = parameters.needed("LogicalResourceId"), parameters.needed("UniqueId")
    if action.holder is None:
        action.context.check("resource:signal_gate")
    report = member_reports.report(member, parameters.needed("Status"))
    with action.context.db.read() as tx:
        stack = action.live_stack(tx)
        holder = _check_stack_user(action, tx, stack, name)
        at = access_keys.location_of(tx, action.holder, stack.id, name)
        group = name if at is None else at.group
        row = _inventory(action, tx, stack, [group]).entry(group).row
        if holder is not None:
            report = member_reports.own_report(tx, holder, stack.id, name, report)
    if row is None:
        raise Rejected("ResourceNotAvailable", f"The Resource ({name}) is not available: it is not begun yet.")
    action.context.service.reports.take(row.key, report)
    return ""


ACTIONS: Mapping[str, Action] = {
    "DescribeStackEvents": describe_events,
    "DescribeStackResource": describe_resource,
    "DescribeStackResources": describe_resources,
    "ListStackResources": list_resources,
    "SignalResource": signal_resource,
}
