"""The desired state of a nested stack, as the previewed properties of its resource describe it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.convergence.nested_stacks.group_revisions import (
    away_members,
    check_policy,
    failed_of,
    first_to_leave,
    wanted_group,
)
from homeostat.convergence.nested_stacks.removal_requests import RemovalRequests
from homeostat.convergence.nested_stacks.template_stacks import environment_inside
from homeostat.desired.compiling import template_of
from homeostat.desired.implied import member_property
from homeostat.desired.members import chain_content, group_content, named_content
from homeostat.model.errors import Rejected, Terminal
from homeostat.planner.report.preview import ResourcePreview
from homeostat.resources.base import ResourceType
from homeostat.resources.composite import Composed
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.families.resource_groups import Launched
from homeostat.resources.nested import FACADE, FromTemplate, NestedStack, parameters_of
from homeostat.resources.registry import type_of
from homeostat.resources.schema import UNKNOWN
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks.contents import Content
from homeostat.templates import declared_in, environments
from homeostat.templates.tree import holds


def desired_inside(
    tx: Transaction,
    note: ResourcePreview,
    parent: Content,
    nested: StackRow | None,
    before: Content,
    launched: Launched = lambda _: None,
    time_left_s: float = math.inf,
    asks: RemovalRequests = RemovalRequests(math.inf),
) -> Content | None:
    """Return the desired state of a nested stack; None if it depends on unknown values.

    Args:
        tx: A consistent read.
        note: Preview of the stack's resource.
        parent: Desired state of the outer stack.
        nested: Row of the nested stack; None before its creation.
        before: Newest revision of the nested stack.
        launched: Returns the properties of a launch configuration by its reference.
        time_left_s: Seconds that an action of the nested stack may take.
        asks: Earlier requests to remove members of a group.

    Raises:
        Rejected, Terminal: The nested stack cannot be as its resource describes it.
    """
    definition = note.definition
    if definition is None:
        return None
    kind = type_of(definition.type)
    environment = environment_inside(parent, note.name, definition.shown_type)
    if isinstance(kind, FromTemplate):
        return _from_template(kind, note.after, parent, environment)
    values = kind.complete(note.after)
    if isinstance(kind, Composed):
        if holds(values, UNKNOWN):
            return None
        files = parent.files if kind.needs_files else {}
        return Content("template", kind.template(values), environment=environment, files=files)
    if any(values.get(name) is UNKNOWN for name in ("count", member_property(definition), "resources")):
        return None
    members = _members(tx, kind, values, nested, before, launched, time_left_s, asks)
    return None if members is None else replace(members, environment=environment, files=parent.files)


def _members(
    tx: Transaction,
    kind: ResourceType,
    values: dict[str, Any],
    nested: StackRow | None,
    before: Content,
    launched: Launched,
    time_left_s: float,
    asks: RemovalRequests,
) -> Content | None:
    """Return the members of a group or chain; None if they depend on unknown values. Raises as `desired_inside`."""
    if isinstance(kind, SoftwareDeploymentGroup):
        return None if holds(values, UNKNOWN) else named_content(kind, values, new=nested is None)
    if isinstance(kind, NestedStack) and kind.contents == "chain":
        return chain_content(values)
    nested_id = nested.id if nested else ""
    try:
        away = away_members(tx, nested, before.group)
        failed, first = failed_of(away), first_to_leave(tx, nested, away)
        wanted = wanted_group(tx, kind, values, nested, before, launched, nested_id, failed, first, asks)
        check_policy(kind, values, nested, before, wanted, away, time_left_s)
    except TypeError:  # members to remove, or their number, are not known yet
        return None
    except (Rejected, Terminal):
        # An unknown value may be the cause: the update itself reports any real error.
        if holds(values, UNKNOWN):
            return None
        raise
    return group_content(wanted)


def _from_template(
    kind: FromTemplate, after: Mapping[str, Any], parent: Content, environment: Mapping[str, Any]
) -> Content | None:
    """Return the desired state of a stack with its own template; None if it depends on unknown values."""
    source, values = kind.source(after), kind.stack_parameters(after)
    if not isinstance(source, str) or not isinstance(values, Mapping):
        return None
    template = template_of(source, parent.files)
    parameters = parameters_of(values, declared_in(template, "parameters"))
    if FACADE in after:
        environment = {**environment, environments.FACADE: after[FACADE]}
    return Content("template", template, parameters, environment, parent.files)
