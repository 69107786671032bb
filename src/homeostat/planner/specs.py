"""Requested objects of clouds: the spec of a row's thing, and the acts and intents made of it. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.intent import ChangeIntent, Intent, OperationIntent
from homeostat.model.plan import Operate, Update
from homeostat.model.world import Resource
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.names import physical_name
from homeostat.resources.base import MaintenanceMethod, ResourceType
from homeostat.resources.registry import type_of


def desired_spec(context: Context, want: ResolvedResource, row: Resource) -> dict[str, Any]:
    return spec_of(context, want.kind, row, want.kind.complete(want.values))


def spec_of(context: Context, kind: ResourceType, row: Resource, properties: Mapping[str, Any]) -> dict[str, Any]:
    return kind.spec(properties, physical_name(context.world.stack.name, row.name, row.key, kind.name_limit))


def requested_spec(context: Context, row: Resource) -> dict[str, Any]:
    """Return the last requested cloud object."""
    kind = type_of(row.type)
    return spec_of(context, kind, row, kind.complete(row.properties))


def intent_of(act: Operate | Update) -> Intent:
    """Return the intent of an act, from which it is repeated."""
    if isinstance(act, Operate):
        return OperationIntent(act.operation, arguments=act.arguments)
    return ChangeIntent(act.changed)


def maintenance_act(context: Context, row: Resource, method: MaintenanceMethod) -> Operate | Update:
    if method.operation:
        return Operate(method.operation, {})
    return Update({**requested_spec(context, row), **method.fields}, tuple(method.fields))
