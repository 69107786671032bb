"""The template of a cluster's stack, from the facts in its rows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.attached import PolicyResources
from homeostat.clustering.decisions.names import IDENTITY, INDEX, NAME
from homeostat.clustering.decisions.origins import Origin
from homeostat.clustering.decisions.profiles import Terms, define, node_metadata
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.store.living import GROUP
from homeostat.model.errors import Rejected
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.group_limits import DRAIN_TIME
from homeostat.templates.weights import TooHeavy, weight

HOT = "2021-04-16"
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


@dataclass(frozen=True, slots=True)
class StackText:
    """The content of a revision of the stack."""

    template: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


def stack_text(facts: ClusterFacts) -> StackText:
    """Return the template of the stack of a cluster.

    Raises:
        Rejected: InvalidSpec; RequestLimitExceeded: the definitions of single nodes are too large together.
    """
    files: dict[str, str] = {}
    environment: dict[str, Any] = {}

    def member(spec: Spec, own: OwnNode | None = None) -> dict[str, Any]:
        definition = define(spec, _terms(facts, own))
        files.update(definition.files)
        for section, content in definition.environment.items():
            environment[section] = {**environment.get(section, {}), **content}
        resource = dict(definition.resource)
        if own is not None and own.origin is not None:
            resource["properties"] = own.origin.filled(resource["properties"])
        return resource

    own = _own(facts.own, member)
    try:
        weight(own, OWN_MAX)
    except TooHeavy as error:
        message = "the nodes that differ from the others weigh too much together: give some of them the same profile"
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message} ({error})") from error
    properties = {
        "count": facts.count,
        "resource_def": member(facts.spec),
        "removal_policies": [{"resource_list": [str(number) for number in facts.removed]}],
        "nodes": {"seed": facts.seed, "format": facts.form},
        "own": own,
        **({"beside": list(facts.policy_resources.nodes)} if facts.policy_resources.nodes else {}),
    }
    group: dict[str, Any] = {"type": NodeGroup.name, "properties": properties}
    rolling = {"rolling_update": dict(facts.batches)} if facts.batches is not None else {}
    drained = {DRAIN_TIME: facts.policy_resources.drain_s} if facts.policy_resources.drain_s else {}
    if rolling or drained:
        group["update_policy"] = {**rolling, **drained}
    resources = {**facts.policy_resources.resources, GROUP: group}
    return StackText({"heat_template_version": HOT, "resources": resources}, files, environment)


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


def _own(nodes: Sequence[OwnNode], member: Any) -> list[dict[str, Any]]:
    """Return the definitions of single nodes; nodes with equal definitions share an entry."""
    entries: list[dict[str, Any]] = []
    for node in sorted(nodes, key=lambda candidate: candidate.number):
        definition = member(node.spec, node)
        same = next((entry for entry in entries if entry["resource_def"] == definition), None)
        if same is None:
            entries.append(same := {"resource_def": definition, "numbers": []})
        numbers = same["numbers"]
        if numbers and numbers[-1][1] == node.number:
            numbers[-1] = [numbers[-1][0], node.number + 1]
        else:
            numbers.append([node.number, node.number + 1])
    return entries
