"""The plan of `homeostat import-clusters`: the steps from the inventory of the source to that of the target.

Imported objects carry a mark in their metadata, so an interrupted import continues with a new plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MARK = "imported_from"
"""Key in the metadata of an imported object; its value is the id at the source."""
SERVER = "os.nova.server-1.0"
Wire = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All objects of a service, in the format of its API.

    Attributes:
        bindings: Id of a cluster -> its policies.
    """

    profiles: Sequence[Wire] = ()
    policies: Sequence[Wire] = ()
    clusters: Sequence[Wire] = ()
    nodes: Sequence[Wire] = ()
    bindings: Mapping[str, Sequence[Wire]] = field(default_factory=dict)


class Do(StrEnum):
    """The action of a step."""

    PROFILE = "make profile"
    POLICY = "make policy"
    CLUSTER = "make cluster"
    ADOPT = "adopt server"
    JOIN = "join cluster"
    SIZES = "set sizes of cluster"
    ATTACH = "attach policy"
    LEAVE = "leave out"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an import.

    Attributes:
        name: Name of the object.
        source: The object in the source's format.
        more: Ids, at the source, of further objects that the step needs.
        reason: Why the object is left out.
    """

    do: Do
    name: str
    source: Wire
    more: Sequence[str] = ()
    reason: str = ""

    def __str__(self) -> str:
        text = f"{self.do} {self.name}"
        return f"{text}: {self.reason}" if self.reason else text


def planned(source: Inventory, target: Inventory, only: Collection[str] = ()) -> list[Step]:
    """Return the remaining steps, in order.

    Args:
        only: Names or ids of the clusters to import; () for everything, including nodes without a cluster.
    """
    clusters = [cluster for cluster in source.clusters if not only or {cluster["id"], cluster["name"]} & set(only)]
    ids = {cluster["id"] for cluster in clusters}
    nodes = [node for node in source.nodes if node["cluster_id"] in ids or (not node["cluster_id"] and not only)]
    needed = {owner["profile_id"] for owner in [*clusters, *nodes]}
    profiles = [profile for profile in source.profiles if not only or profile["id"] in needed]
    bound = {binding["policy_id"] for id in ids for binding in source.bindings.get(id, ())}
    policies = [policy for policy in source.policies if not only or policy["id"] in bound]
    known = marks(target)
    steps = [Step(Do.PROFILE, profile["name"], profile) for profile in profiles if profile["id"] not in known]
    steps += [Step(Do.POLICY, policy["name"], policy) for policy in policies if same_policy(policy, target) is None]
    for cluster in clusters:
        members = [node for node in nodes if node["cluster_id"] == cluster["id"]]
        steps += _of_cluster(source, target, cluster, sorted(members, key=lambda node: int(node["index"])))
    for node in nodes:
        steps += _of_node(node, known) if not node["cluster_id"] else []
    return steps


def marks(target: Inventory) -> dict[str, Wire]:
    """Return the imported objects, by their ids at the source."""
    rows = (*target.profiles, *target.clusters, *target.nodes)
    return {row["metadata"][MARK]: row for row in rows if MARK in (row.get("metadata") or {})}


def same_policy(policy: Wire, target: Inventory) -> Wire | None:
    """Return the target's equal policy, if any: policies have no metadata for a mark."""
    alike = (
        candidate
        for candidate in target.policies
        if (candidate["name"], candidate["spec"]) == (policy["name"], policy["spec"])
    )
    return next(alike, None)


def why_not(node: Wire) -> str:
    """Return why a node cannot be adopted; "" if it can."""
    if not node.get("physical_id"):
        return "it has no server"
    return f"it is in status {node['status']}: recover or delete it first" if node["status"] != "ACTIVE" else ""


def _of_node(node: Wire, known: Mapping[str, Wire]) -> list[Step]:
    if node["id"] in known:
        return []
    reason = why_not(node)
    return [Step(Do.LEAVE if reason else Do.ADOPT, node["name"], node, reason=reason)]


def _of_cluster(source: Inventory, target: Inventory, cluster: Wire, members: Sequence[Wire]) -> list[Step]:
    known = marks(target)
    profile = next((candidate for candidate in source.profiles if candidate["id"] == cluster["profile_id"]), None)
    if profile is None or profile["type"] != SERVER:
        kind = "unknown" if profile is None else profile["type"]
        reason = f"its profile is of type {kind}, and only servers are adopted (type {SERVER})"
        return [Step(Do.LEAVE, cluster["name"], cluster, reason=reason)]
    here = known.get(cluster["id"])
    steps = [] if here is not None else [Step(Do.CLUSTER, cluster["name"], cluster)]
    for node in members:
        steps += _of_node(node, known)
    able = [node for node in members if not why_not(node) or node["id"] in known]
    joined = {node["id"] for node in able if here is not None and _cluster_of(known, node) == here["id"]}
    joining = [node["id"] for node in able if node["id"] not in joined]
    if joining:
        steps.append(Step(Do.JOIN, cluster["name"], cluster, joining))
    sizes = ("min_size", "max_size")
    if here is None or any(here[name] != cluster[name] for name in sizes):
        steps.append(Step(Do.SIZES, cluster["name"], cluster))
    attached = {binding["policy_id"] for binding in target.bindings.get(here["id"], ())} if here is not None else set()
    policies = {policy["id"]: policy for policy in source.policies}
    for binding in source.bindings.get(cluster["id"], ()):
        policy = policies.get(binding["policy_id"])
        existing = same_policy(policy, target) if policy is not None else None
        if existing is None or existing["id"] not in attached:
            steps.append(Step(Do.ATTACH, f"{binding['policy_name']} to {cluster['name']}", binding))
    return steps


def _cluster_of(known: Mapping[str, Wire], node: Wire) -> str | None:
    return known[node["id"]]["cluster_id"] if node["id"] in known else None
