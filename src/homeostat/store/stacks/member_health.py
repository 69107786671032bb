"""What health policies have found of the resources of a stack and of the groups in it, for users."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, or_, select

from homeostat.model.node_health import Finding
from homeostat.model.status import Action
from homeostat.planner.policies.reported import with_report
from homeostat.store import schema

_node, _resource, _stack, _check = schema.node_health, schema.resource, schema.stack, schema.health_check
_host = schema.declared_host


def listed(tx: Connection, top: Row[Any], finding: Finding | None, marker: str, limit: int) -> list[Row[Any]]:
    """Return the resources that a health policy holds for, in the order of their keys.

    Args:
        tx: A consistent read.
        top: Row of the stack.
        finding: Only those that may have this finding; None for all.
        marker: Key after which the list begins; "" for the first one.
        limit: How many at most.

    Returns:
        Rows of key, name, handle, action, status, marks; stack_id, stack_name, parent_name; health.
    """
    of_row = (_resource.c[name] for name in ("key", "name", "handle", "action", "status", "marks", "stack_id"))
    of_stack = (_stack.c.name.label("stack_name"), _stack.c.parent_name)
    joined = _node.join(_resource, _resource.c.key == _node.c.key).join(_stack, _stack.c.id == _resource.c.stack_id)
    where = [_is_below(top), _stack.c.deleted_at.is_(None), _node.c.key > marker]
    where += [_resource.c.replaced_by.is_(None), _resource.c.action != Action.DELETE]
    if finding is Finding.UNHEALTHY:  # also by a mark, of which the reader judges
        where.append(or_(_node.c.finding == finding.value, _resource.c.marks.is_not(None)))
    elif finding is not None:
        where.append(_node.c.finding == finding.value)
    chosen = select(*of_row, *of_stack, _node.c.health).select_from(joined).where(*where)
    return list(tx.execute(chosen.order_by(_node.c.key).limit(limit)))


def policies(tx: Connection, top: Row[Any]) -> list[Row[Any]]:
    """Return the policies that hold for what `listed` returns, in the order in which they came.

    Returns:
        Rows of name (of the resource, or group), members, spec; stack_id, parent_name.
    """
    columns = (_check.c.name, _check.c.members, _check.c.spec, _check.c.stack_id, _stack.c.parent_name)
    joined = _check.join(_stack, _stack.c.id == _check.c.stack_id)
    of_group = and_(_check.c.members, _check.c.stack_id == top.parent_id, _check.c.name == top.parent_name)
    where = (or_(_is_below(top), of_group), _stack.c.deleted_at.is_(None), _check.c.enabled)
    return list(tx.execute(select(*columns).select_from(joined).where(*where).order_by(_check.c.created_at)))


def declared_hosts(tx: Connection, top: Row[Any]) -> list[Row[Any]]:
    """Return the hosts that are declared down by fences of the stack and of the groups in it, the oldest first.

    Returns:
        Rows of host, at, name, reason; stack_id, parent_name.
    """
    columns = (*(_host.c[each] for each in ("host", "at", "name", "reason", "stack_id")), _stack.c.parent_name)
    joined = _host.join(_stack, _stack.c.id == _host.c.stack_id)
    where = (_is_below(top), _stack.c.deleted_at.is_(None))
    return list(tx.execute(select(*columns).select_from(joined).where(*where).order_by(_host.c.at, _host.c.host)))


def _is_below(top: Row[Any]) -> ColumnElement[bool]:
    inside = _stack.c.root_id == top.id if top.parent_id is None else _stack.c.parent_id == top.id
    return or_(_stack.c.id == top.id, inside)


def finding_of(tx: Connection, stack_id: str, name: str, now: float) -> str | None:
    """Return what was found of a resource, or a person says of it; None where no health policy holds for it."""
    joined = _node.join(_resource, _resource.c.key == _node.c.key)
    mine = (_resource.c.stack_id == stack_id, _resource.c.name == name, _resource.c.replaced_by.is_(None))
    found = tx.execute(select(_node.c.health, _resource.c.marks).select_from(joined).where(*mine)).first()
    return None if found is None else with_report(found.health, found.marks, now).finding.value
