"""Findings of health policies about the resources of a stack and its groups, for users."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select

from homeostat.model.marks import Marks
from homeostat.model.node_health import Finding, NodeHealth
from homeostat.model.status import Action
from homeostat.planner.policies.reported import with_report
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.sql import typed

_node, _resource, _stack, _check = schema.node_health, schema.resource, schema.stack, schema.health_check
_host = schema.declared_host


class JudgedMember(NamedTuple):
    """A resource under a health policy, with its stack and its health."""

    key: str
    name: str
    handle: str
    action: str
    status: str
    marks: Marks | None
    stack_id: str
    stack_name: str
    parent_name: str | None
    health: NodeHealth


def listed(tx: Transaction, top: StackRow, finding: Finding | None, marker: str, limit: int) -> list[JudgedMember]:
    """Return the resources under a health policy, in the order of their keys.

    Args:
        marker: Key after which the list begins; "" for the first page.
    """
    of_row = (_resource.c[name] for name in ("key", "name", "handle", "action", "status", "marks", "stack_id"))
    of_stack = (_stack.c.name.label("stack_name"), _stack.c.parent_name)
    joined = _node.join(_resource, _resource.c.key == _node.c.key).join(_stack, _stack.c.id == _resource.c.stack_id)
    where = [_is_below(top), _stack.c.deleted_at.is_(None), _node.c.key > marker]
    where += [_resource.c.replaced_by.is_(None), _resource.c.action != Action.DELETE]
    if finding is Finding.UNHEALTHY:  # or perhaps by a mark, which the caller evaluates
        where.append(or_(_node.c.finding == finding.value, _resource.c.marks.is_not(None)))
    elif finding is not None:
        where.append(_node.c.finding == finding.value)
    chosen = select(*of_row, *of_stack, _node.c.health).select_from(joined).where(*where)
    return list(typed.rows(JudgedMember, tx.execute(chosen.order_by(_node.c.key).limit(limit))))


class StoredPolicy(NamedTuple):
    """A health policy, with the name of its resource or group."""

    name: str
    members: bool
    spec: Any
    stack_id: str
    parent_name: str | None


def policies(tx: Transaction, top: StackRow) -> list[StoredPolicy]:
    """Return the policies for the resources of `listed`, in the order of their creation."""
    columns = (_check.c.name, _check.c.members, _check.c.spec, _check.c.stack_id, _stack.c.parent_name)
    joined = _check.join(_stack, _stack.c.id == _check.c.stack_id)
    of_group = and_(_check.c.members, _check.c.stack_id == top.parent_id, _check.c.name == top.parent_name)
    where = (or_(_is_below(top), of_group), _stack.c.deleted_at.is_(None), _check.c.enabled)
    chosen = select(*columns).select_from(joined).where(*where).order_by(_check.c.created_at)
    return list(typed.rows(StoredPolicy, tx.execute(chosen)))


class DeclaredHost(NamedTuple):
    host: str
    at: float
    name: str
    reason: str
    stack_id: str
    parent_name: str | None


def declared_hosts(tx: Transaction, top: StackRow) -> list[DeclaredHost]:
    """Return the hosts declared down by fences of the stack and its groups, the oldest first."""
    columns = (*(_host.c[name] for name in ("host", "at", "name", "reason", "stack_id")), _stack.c.parent_name)
    joined = _host.join(_stack, _stack.c.id == _host.c.stack_id)
    where = (_is_below(top), _stack.c.deleted_at.is_(None))
    chosen = select(*columns).select_from(joined).where(*where).order_by(_host.c.at, _host.c.host)
    return list(typed.rows(DeclaredHost, tx.execute(chosen)))


def _is_below(top: StackRow) -> ColumnElement[bool]:
    inside = _stack.c.root_id == top.id if top.parent_id is None else _stack.c.parent_id == top.id
    return or_(_stack.c.id == top.id, inside)


def finding_of(tx: Transaction, stack_id: str, name: str, now: float) -> str | None:
    """Return the finding about a resource, including user reports; None if no health policy applies."""
    joined = _node.join(_resource, _resource.c.key == _node.c.key)
    conditions = (_resource.c.stack_id == stack_id, _resource.c.name == name, _resource.c.replaced_by.is_(None))
    row = tx.execute(select(_node.c.health, _resource.c.marks).select_from(joined).where(*conditions)).first()
    return None if row is None else with_report(row.health, row.marks, now).finding.value
