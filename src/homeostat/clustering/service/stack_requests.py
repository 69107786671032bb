"""Requests for a revision of the stack of a cluster, or of a node without a cluster, from the facts in its rows. Pure.

The content of the stack is a template, although the service itself compiles it again, as the content of any stack:

- the types, properties and nested templates of a profile are checked, counted and looked up in the clouds as those of
  templates, with the same messages;
- the revision is exported, compared and restored like others;
- the pass of the stack computes the group's revision (`model.group.GroupDefinition`) from it: only then the references
  to the server group and the pool of the policies are known.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.attached import PolicyResources
from homeostat.clustering.decisions.definitions import HOT
from homeostat.clustering.decisions.names import IDENTITY, INDEX, NAME
from homeostat.clustering.decisions.origins import Origin, origin_of
from homeostat.clustering.decisions.placement import GROUP as SERVER_GROUP
from homeostat.clustering.decisions.placement import REGION, ZONE
from homeostat.clustering.decisions.profiles import Terms, define, node_metadata
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.store.living import GROUP
from homeostat.model.errors import Rejected
from homeostat.model.group import MemberDefinition, Range, RangedDefinition
from homeostat.resources.families import node_groups
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.group_limits import DRAIN_TIME
from homeostat.services.pipeline.request import CheckTypes, StackRequest
from homeostat.templates.weights import TooHeavy, weight

INTERNAL = frozenset(node_type.name for node_type in node_groups.INTERNAL)
"""Types for the stacks of clusters only, not for templates of users."""
LEFT_ALONE: Mapping[str, Any] = {GROUP: {"converge": False}}
"""Exceptions of the stack of a cluster: without a health policy lost nodes are not replaced."""
TIMEOUT_S = 3600
"""Time limit of an action of a node without a cluster."""
OWN_MAX = 4 * 1024 * 1024
"""Weight (`templates.weights`) of the definitions of single nodes together."""


@dataclass(frozen=True, slots=True)
class OwnNode:
    """A node that differs from the others.

    Attributes:
        name: Its own name; "" if the name follows from the number.
        zone: Availability zone from a placement policy; "" for the profile's zone.
        region: Region from a placement policy; "" for the profile's region.
        grouped: Whether the node is in the server group of its cluster, if any.
        identity: Its own id; "" if the id follows from the number.
        origin: The stack in which the node was created; None for this stack.
    """

    number: int
    spec: Spec
    name: str = ""
    zone: str = ""
    region: str = ""
    grouped: bool = False
    identity: str = ""
    origin: Origin | None = None

    @classmethod
    def of_row(cls, number: int, values: Mapping[str, Any], spec: Spec) -> "OwnNode":
        """Return a node from the columns of its row."""
        placement, origin = values["data"].get("placement") or {}, origin_of(values["data"])
        return cls(
            number,
            spec,
            values["name"] if values["own"] else "",
            placement.get(ZONE) or "",
            placement.get(REGION) or "",
            SERVER_GROUP in placement,
            values["id"] if origin else "",
            origin,
        )


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts for the stack of a cluster, or of a node without a cluster.

    Attributes:
        seed: Base of the names and ids of the nodes.
        cluster_id: "" for a node without a cluster.
        form: Format of node names.
        spec: Profile of the cluster.
        count: Number of nodes with this revision.
        removed: Numbers of nodes that leave with this revision.
        own: Nodes that differ from the others.
        batches: Rolling update of the nodes, `{max_batch_size, min_in_service, pause_time}`; None for all at once.
        policy_resources: Resources of the attached policies.
    """

    seed: str
    cluster_id: str
    form: str
    spec: Spec
    count: int
    removed: Sequence[int] = ()
    own: Sequence[OwnNode] = ()
    batches: Mapping[str, Any] | None = None
    policy_resources: PolicyResources = field(default_factory=PolicyResources)


def stack_request(facts: ClusterFacts, timeout: int = TIMEOUT_S, check_types: CheckTypes | None = None) -> StackRequest:
    """Return the request for a revision of the stack of a cluster.

    Args:
        timeout: Seconds that an action may take.
        check_types: See `StackRequest`.

    Raises:
        Rejected: InvalidSpec; RequestLimitExceeded: the definitions of single nodes are too large together.
    """
    files: dict[str, str] = {}
    environment: dict[str, Any] = {}

    def member(spec: Spec, own: OwnNode | None = None) -> MemberDefinition:
        definition = define(spec, _terms(facts, own))
        files.update(definition.files)
        for section, content in definition.environment.items():
            environment[section] = {**environment.get(section, {}), **content}
        if own is None or own.origin is None:
            return definition.resource
        return {**definition.resource, "properties": own.origin.filled(definition.resource["properties"])}

    own = _shared([(node.number, member(node.spec, node)) for node in sorted(facts.own, key=lambda node: node.number)])
    group = _group(facts, member(facts.spec), [part.encoded() for part in own])
    return StackRequest(
        template={"heat_template_version": HOT, "resources": {**facts.policy_resources.resources, GROUP: group}},
        files=files,
        environment=environment,
        timeout_mins=max(1, math.ceil(timeout / 60)),
        disable_rollback=True,
        internal_types=INTERNAL,
        check_types=check_types,
    )


def node_request(spec: Spec, values: Mapping[str, Any], check_types: CheckTypes | None) -> StackRequest:
    """Return the request for the stack of a node without a cluster; `values` are the columns of the node's row."""
    own = OwnNode.of_row(0, {**values, "own": True}, spec)
    return stack_request(ClusterFacts(values["stack_id"], "", "", spec, 1, own=(own,)), TIMEOUT_S, check_types)


def _group(facts: ClusterFacts, member: MemberDefinition, own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the definition of the group of nodes.

    Args:
        member: Definition of each node.
        own: Definitions of single nodes.
    """
    try:
        weight(own, OWN_MAX)
    except TooHeavy as error:
        message = "the nodes that differ from the others weigh too much together: give some of them the same profile"
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message} ({error})") from error
    policies = facts.policy_resources
    properties = {
        "count": facts.count,
        "resource_def": member,
        "removal_policies": [{"resource_list": [str(number) for number in facts.removed]}],
        "nodes": {"seed": facts.seed, "format": facts.form},
        "own": own,
        **({"beside": [companion.encoded() for companion in policies.companions]} if policies.companions else {}),
    }
    rolling = {"rolling_update": dict(facts.batches)} if facts.batches is not None else {}
    policy = rolling | ({DRAIN_TIME: policies.drain_s} if policies.drain_s else {})
    return {"type": NodeGroup.name, "properties": properties, **({"update_policy": policy} if policy else {})}


def _terms(facts: ClusterFacts, own: OwnNode | None) -> Terms:
    """Return the terms for the definition of a single node, or with None of all nodes."""
    moved = own is not None and own.origin is not None
    identity, index = (own.identity, str(own.number + 1)) if own is not None and moved else (IDENTITY, INDEX)
    entries = node_metadata(identity, facts.cluster_id, 0)
    metadata = {key: index if key == "cluster_node_index" else value for key, value in entries.items()}
    if own is None:
        return Terms(NAME, metadata)
    group = facts.policy_resources.server_group if own.grouped else None
    return Terms(own.name or NAME, metadata, zone=own.zone, server_group=group, region=own.region)


def _shared(definitions: Sequence[tuple[int, MemberDefinition]]) -> list[RangedDefinition]:
    """Return the definitions of single nodes, in the order of their numbers; equal definitions share an entry."""
    parts: list[tuple[MemberDefinition, list[Range]]] = []
    for number, definition in definitions:
        numbers = next((numbers for other, numbers in parts if other == definition), None)
        if numbers is None:
            parts.append((definition, numbers := []))
        if numbers and numbers[-1][1] == number:
            numbers[-1] = (numbers[-1][0], number + 1)
        else:
            numbers.append((number, number + 1))
    return [RangedDefinition(definition, tuple(numbers)) for definition, numbers in parts]
