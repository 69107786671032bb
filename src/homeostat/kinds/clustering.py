"""Clustering: profiles, policies, clusters, nodes and receivers, which the service itself provides."""

from homeostat.kinds.base import BOOLEAN, INTEGER, TEXT, Field, FieldType, Kind, Statuses, listing, mapping
from homeostat.model.observed import Remedy

ADOPT = {
    "adopt": "With {token, spec, id, status, metadata, data}: takes over the one of that id, or makes another one."
}
BINDINGS = "[{cluster_id, enabled}]"

KINDS = (
    Kind(
        "cluster_profile",
        "What the nodes of clusters are made from.",
        extra_fixed={"type": Field(FieldType.TEXT, "", "with its version: `os.nova.server-1.0`")},
        reported={"created_at": TEXT, "updated_at": TEXT, "project": TEXT, "user": TEXT},
        operations=ADOPT,
    ),
    Kind(
        "cluster_policy",
        "A rule for clusters, and the clusters that it is attached to.",
        extra_fixed={"type": Field(FieldType.TEXT, "", "with its version: `senlin.policy.scaling-1.0`")},
        extra_mutable={"bindings": listing(BINDINGS, "a creation may name a cluster; reported are all there are")},
        reported={"status": TEXT, "created_at": TEXT, "updated_at": TEXT, "project": TEXT, "user": TEXT},
        statuses=Statuses(ready=frozenset({"attached"}), operations={"detached": "attach"}),
        operations={"attach": "Attaches it to the clusters that its `bindings` name, once these are idle.", **ADOPT},
        notes=("It is `detached` until it is attached to every cluster that its `bindings` name.",),
    ),
    Kind(
        "node_cluster",
        "A cluster of nodes that are alike.",
        extra_mutable={
            "desired_capacity": Field(FieldType.INTEGER, "", "another value resizes it; others may have, too"),
            "max_size": Field(FieldType.INTEGER, "", "-1 for no limit"),
            "timeout": Field(FieldType.INTEGER, "", "seconds that an action may take"),
            "policies": listing("[{policy_id, enabled}]", "it may have others as well"),
        },
        reported={
            "status": TEXT,
            "status_reason": TEXT,
            "fault": TEXT,
            "failures": Field(FieldType.BOOLEAN, "", "an update tries it again"),
            "profile_name": TEXT,
            "nodes": listing("[id]"),
            "init_at": TEXT,
            "created_at": TEXT,
            "updated_at": TEXT,
            "project": TEXT,
            "user": TEXT,
        },
        statuses=Statuses(
            ready=frozenset({"active", "warning"}),
            busy=frozenset({"init", "creating", "updating", "resizing", "checking", "recovering", "operating"}),
            broken={"error": Remedy.MANUAL, "critical": Remedy.MANUAL},
        ),
        operations=ADOPT,
        notes=(
            "A cluster in which nodes are missing has the status `warning`, and `error` once an action has failed.",
        ),
    ),
    Kind(
        "cluster_node",
        "A node, in a cluster or without one.",
        extra_mutable={"cluster_id": Field(FieldType.TEXT, "", "another one moves it")},
        reported={
            "status": TEXT,
            "status_reason": TEXT,
            "fault": TEXT,
            "profile_name": TEXT,
            "physical_id": TEXT,
            "index": INTEGER,
            "role": TEXT,
            "tainted": BOOLEAN,
            "init_at": TEXT,
            "created_at": TEXT,
            "updated_at": TEXT,
            "project": TEXT,
            "user": TEXT,
            "data": mapping("{placement: {zone}}"),
        },
        statuses=Statuses(
            ready=frozenset({"active", "warning"}),
            busy=frozenset({"init", "creating", "updating", "recovering", "operating"}),
            broken={"error": Remedy.MANUAL},
        ),
        operations=ADOPT,
    ),
    Kind(
        "cluster_receiver",
        "An address at which others begin an action of a cluster.",
        reported={
            "channel": mapping("{alarm_url}"),
            "created_at": TEXT,
            "updated_at": TEXT,
            "project": TEXT,
            "user": TEXT,
        },
        operations=ADOPT,
    ),
)
