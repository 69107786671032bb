"""The template of a cluster's stack, as its rows say it. Pure."""

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
        name: Its name; "" for the one that follows from its number.
        zone: Availability zone that was chosen for it; "" for that of the profile.
        region: Region that was chosen for it; "" for that of the profile.
        grouped: Whether it is in the server group of its cluster, if that has one.
        identity: Its id; "" for the one that follows from its number.
        origin: Where it was made, if that was elsewhere; None for here.
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
    """What the stack of a cluster, or of a node without one, is made from.

    Attributes:
        seed: What the names and ids of its nodes are made of.
        cluster_id: "" for a node without a cluster.
        form: Format of names.
        spec: Profile of the cluster.
        count: How many nodes there are to be.
        removed: Numbers of nodes that leave with this revision.
        own: Nodes that differ from the others.
        batches: How nodes are changed, `{max_batch_size, min_in_service, pause_time}`; None for all at once.
        policy_resources: Resources that the policies of the cluster put into its stack.
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
    """What is stored as a revision of the stack."""

    template: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


def stack_text(facts: ClusterFacts) -> StackText:
    """Return the template of the stack of a cluster.

    Raises:
        Rejected: InvalidSpec; RequestLimitExceeded, where too many nodes differ by too much.
    """
    files: dict[str, str] = {}
    environment: dict[str, Any] = {}

    def member(spec: Spec, own: OwnNode | None = None) -> dict[str, Any]:
        made = define(spec, _terms(facts, own))
        files.update(made.files)
        for section, content in made.environment.items():
            environment[section] = {**environment.get(section, {}), **content}
        resource = dict(made.resource)
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
    """Return what the definition of one node, or of all of them, needs besides the profile."""
    moved = own is not None and own.origin is not None
    identity, index = (own.identity, str(own.number + 1)) if own is not None and moved else (IDENTITY, INDEX)
    found = node_metadata(identity, facts.cluster_id, 0)
    metadata = {key: index if key == "cluster_node_index" else value for key, value in found.items()}
    if own is None:
        return Terms(NAME, metadata)
    group = facts.policy_resources.server_group if own.grouped else None
    return Terms(own.name or NAME, metadata, zone=own.zone, server_group=group, region=own.region)


def _own(nodes: Sequence[OwnNode], member: Any) -> list[dict[str, Any]]:
    """Return the definitions of single nodes; those that are alike together."""
    found: list[dict[str, Any]] = []
    for each in sorted(nodes, key=lambda node: node.number):
        definition = member(each.spec, each)
        same = next((entry for entry in found if entry["resource_def"] == definition), None)
        if same is None:
            found.append(same := {"resource_def": definition, "numbers": []})
        numbers = same["numbers"]
        if numbers and numbers[-1][1] == each.number:
            numbers[-1] = [numbers[-1][0], each.number + 1]
        else:
            numbers.append([each.number, each.number + 1])
    return found
