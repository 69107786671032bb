"""What `homeostat import-clusters` does: the steps from what one service has to what another one has already. Pure.

What was imported is known by a mark in its metadata, so that a plan that was cut off is made again, and goes on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MARK = "imported_from"
"""Key, in the metadata of what was imported, of the id that it had."""
SERVER = "os.nova.server-1.0"
Wire = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a service has, as its API shows it.

    Attributes:
        bindings: Id of a cluster -> its policies.
    """

    profiles: Sequence[Wire] = ()
    policies: Sequence[Wire] = ()
    clusters: Sequence[Wire] = ()
    nodes: Sequence[Wire] = ()
    bindings: Mapping[str, Sequence[Wire]] = field(default_factory=dict)


class Do(StrEnum):
    """What a step does."""

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
    """One step.

    Attributes:
        name: Name of what it is about.
        source: The same as the former service shows it.
        more: Ids, as the former service has them, of what it needs besides.
        reason: Why something is left out.
    """

    do: Do
    name: str
    source: Wire
    more: Sequence[str] = ()
    reason: str = ""

    def __str__(self) -> str:
        shown = f"{self.do} {self.name}"
        return f"{shown}: {self.reason}" if self.reason else shown


def planned(source: Inventory, there: Inventory, only: Collection[str] = ()) -> list[Step]:
    """Return the steps that are left, in order.

    Args:
        source: What the former service has.
        there: What this one has.
        only: Names or ids of the clusters that are imported; () for everything, nodes without a cluster too.
    """
    clusters = [each for each in source.clusters if not only or {each["id"], each["name"]} & set(only)]
    ids = {each["id"] for each in clusters}
    nodes = [each for each in source.nodes if each["cluster_id"] in ids or (not each["cluster_id"] and not only)]
    needed = {each["profile_id"] for each in [*clusters, *nodes]}
    profiles = [each for each in source.profiles if not only or each["id"] in needed]
    bound = {each["policy_id"] for each in clusters for each in source.bindings.get(each["id"], ())}
    policies = [each for each in source.policies if not only or each["id"] in bound]
    known = marks(there)
    steps = [Step(Do.PROFILE, each["name"], each) for each in profiles if each["id"] not in known]
    steps += [Step(Do.POLICY, each["name"], each) for each in policies if same_policy(each, there) is None]
    for cluster in clusters:
        members = [each for each in nodes if each["cluster_id"] == cluster["id"]]
        steps += _of_cluster(source, there, cluster, sorted(members, key=lambda node: int(node["index"])))
    for node in nodes:
        steps += _of_node(node, known) if not node["cluster_id"] else []
    return steps


def marks(there: Inventory) -> dict[str, Wire]:
    """Return what was imported, by the ids that it had."""
    found = (each for sort in (there.profiles, there.clusters, there.nodes) for each in sort)
    return {each["metadata"][MARK]: each for each in found if MARK in (each.get("metadata") or {})}


def same_policy(policy: Wire, there: Inventory) -> Wire | None:
    """Return the policy that is this one: policies have no metadata for a mark."""
    alike = (each for each in there.policies if (each["name"], each["spec"]) == (policy["name"], policy["spec"]))
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


def _of_cluster(source: Inventory, there: Inventory, cluster: Wire, members: Sequence[Wire]) -> list[Step]:
    known = marks(there)
    profile = next((each for each in source.profiles if each["id"] == cluster["profile_id"]), None)
    if profile is None or profile["type"] != SERVER:
        kind = "unknown" if profile is None else profile["type"]
        reason = f"its profile is of type {kind}, and only servers are adopted (type {SERVER})"
        return [Step(Do.LEAVE, cluster["name"], cluster, reason=reason)]
    here = known.get(cluster["id"])
    steps = [] if here is not None else [Step(Do.CLUSTER, cluster["name"], cluster)]
    for node in members:
        steps += _of_node(node, known)
    able = [each for each in members if not why_not(each) or each["id"] in known]
    joined = {each["id"] for each in able if here is not None and _cluster_of(known, each) == here["id"]}
    joining = [each["id"] for each in able if each["id"] not in joined]
    if joining:
        steps.append(Step(Do.JOIN, cluster["name"], cluster, joining))
    sizes = ("min_size", "max_size")
    if here is None or any(here[name] != cluster[name] for name in sizes):
        steps.append(Step(Do.SIZES, cluster["name"], cluster))
    attached = {each["policy_id"] for each in there.bindings.get(here["id"], ())} if here is not None else set()
    policies = {each["id"]: each for each in source.policies}
    for binding in source.bindings.get(cluster["id"], ()):
        policy_there = same_policy(policies[binding["policy_id"]], there) if binding["policy_id"] in policies else None
        if policy_there is None or policy_there["id"] not in attached:
            steps.append(Step(Do.ATTACH, f"{binding['policy_name']} to {cluster['name']}", binding))
    return steps


def _cluster_of(known: Mapping[str, Wire], node: Wire) -> str | None:
    return known[node["id"]]["cluster_id"] if node["id"] in known else None
