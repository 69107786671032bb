"""Health policies of templates: each applies to a group or a server of its stack (ADR 0078)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from homeostat.builtin.kinds.base import RecordKind
from homeostat.builtin.sessions import RecordSession
from homeostat.clouds.port import Creation
from homeostat.clustering.decisions.health_policy import Intervals, health_policy, problem_on
from homeostat.clustering.decisions.policies import check_policy
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.health_policy import DetectionType
from homeostat.model.status import Action
from homeostat.resources.families.health_policies import HEALTH, policy_spec
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.registry import kind_of, type_of
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Owner, Record
from homeostat.store.database import Transaction
from homeostat.store.shards import health
from homeostat.store.stacks import revisions, stacks

_resource = schema.resource


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a policy.

    Attributes:
        name: Name of the resource.
        is_group: Whether the policy applies to the members of the resource.
        type: Type of the resource, or of the members.
    """

    name: str
    is_group: bool
    type: str


class HealthPolicies(RecordKind):
    """Health policies of templates."""

    kind = HEALTH

    def make(self, session: RecordSession, intent: Creation, owner: Owner) -> list[Record]:
        new = session.record(self.kind, intent.token, dict(intent.spec))
        self._hold(session, new, owner)
        return [new]

    def change(self, session: RecordSession, record: Record, spec: Mapping[str, Any]) -> None:
        owner = self.owner(session, record)
        record.object = {**record.object, **spec}
        self._hold(session, record, owner)
        session.keep(record)

    def end(self, session: RecordSession, record: Record) -> bool:
        health.detach(session.tx, record.id, session.now)
        return super().end(session, record)

    def _hold(self, session: RecordSession, record: Record, owner: Owner) -> None:
        """Apply a policy to its target, replacing its former version, or its predecessor in the same resource.

        On an error nothing has changed, and the caller keeps the stored policy.

        Raises:
            Terminal: The policy does not fit, or another policy applies to the target.
        """
        spec = policy_spec(record.object)
        target = _target(session.tx, owner, str(record.object["target"]))
        _check_fit(spec, target, session.health_interval_min)
        holding = health.source_of(session.tx, owner.stack_id, target.name)
        if holding not in (None, record.id) and not self._is_predecessor(session, holding, owner):
            raise Terminal(f"Another health policy holds for {target.name} already: a resource has one at most")
        for source in {record.id, holding or record.id}:
            health.detach(session.tx, source, session.now)
        record.object["holds_for"] = target.name
        values = {
            "id": session.id(),
            "stack_id": owner.stack_id,
            "name": target.name,
            "members": target.is_group,
            "source": record.id,
            "spec": spec,
            "enabled": bool(record.object.get("enabled", True)),
        }
        health.attach(session.tx, values, session.now)

    def _is_predecessor(self, session: RecordSession, source: str, owner: Owner) -> bool:
        """Return whether a policy is the former record of the same resource, which is being replaced."""
        record = records.of_ids(session.tx, self.kind, [source]).get(source)
        key = "" if record is None else records.key_of(record.token)
        before = records.owners(session.tx, [key]).get(key)
        return before is not None and (before.stack_id, before.name) == (owner.stack_id, owner.name)


def _target(tx: Transaction, owner: Owner, reference: str) -> Target:
    """Return the target of a policy in its stack, by a reference.

    Raises:
        Terminal: The target does not exist, or health policies do not apply to its type.
    """
    conditions = (_resource.c.stack_id == owner.stack_id, _resource.c.replaced_by.is_(None))
    alive = (_resource.c.action != Action.DELETE, _resource.c.handle != "")
    chosen = select(_resource.c.name, _resource.c.type, _resource.c.handle).where(*conditions, *alive)
    resource = tx.execute(chosen.where(_resource.c.handle == reference)).first()
    if resource is None:
        raise Terminal("target: it refers to no group and no server of this stack: name one by get_resource")
    if isinstance(type_of(resource.type), Membership):
        return Target(resource.name, True, _members(tx, resource.handle))
    if kind_of(resource.type) == "server":
        return Target(resource.name, False, resource.type)
    text = f"target: {resource.name} is of type {resource.type}: a health policy holds for a group or a server"
    raise Terminal(f"{text}; a cluster gets its own, of type senlin.policy.health")


def _members(tx: Transaction, group: str) -> str:
    """Return the type of the members of a group."""
    stack = stacks.get(tx, group)
    definition = None if stack is None else revisions.group_of(tx, stack.id, stack.revision)
    if definition is None:
        raise Terminal("target: the group is not there any more")
    return str(definition.resource_def["type"])


def _check_fit(spec: Mapping[str, Any], target: Target, interval_min: int) -> None:
    """Check a policy with all values: the check of the template had no values from other resources."""
    try:
        policy = health_policy(check_policy(spec, Intervals(interval_min)))
    except Rejected as error:
        raise Terminal(error.detail) from error
    problem = problem_on(policy, target.type, kind_of(target.type) == "server")
    if not problem and any(detection.type is DetectionType.BALANCER for detection in policy.detections):
        problem = f"{DetectionType.BALANCER} is for clusters that have a policy of type senlin.policy.loadbalance"
    if problem:
        raise Terminal(problem)
