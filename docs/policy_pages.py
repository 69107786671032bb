"""One page for each type of policy of clusters: what it does, an example, its properties."""

from collections.abc import Mapping
from textwrap import dedent

from docs.clustering_page import policy_lines

from homeostat.clustering.decisions.policies import POLICY_TYPES

FOLDER = "policies"
TEXTS: Mapping[str, tuple[str, str]] = {
    "scaling": (
        """
        Says how many nodes come or go where an action names no count, and for how long the size stays afterwards: a
        request within `cooldown` is refused (409). A cluster may have several for each direction; the one that was
        attached last counts. What would go beyond the limits of the cluster, also by a count in the request, fails and
        changes nothing, unless `best_effort` lets it go as far as they allow.
        """,
        """
        event: CLUSTER_SCALE_OUT
        adjustment:
          type: CHANGE_IN_PERCENTAGE
          number: 20
          min_step: 2
          best_effort: true
          cooldown: 120
        """,
    ),
    "deletion": (
        """
        Says which nodes go first when a cluster shrinks, how long they stay in service after that was decided, and
        whether they are destroyed or go on without a cluster. With `hooks` a queue or a URL is told before a node goes,
        and the node waits for `complete_lifecycle`.
        """,
        """
        criteria: OLDEST_PROFILE_FIRST
        grace_period: 30
        destroy_after_deletion: true
        """,
    ),
    "loadbalance": (
        """
        Nodes are members of a pool behind a load balancer, which is made in the stack of the cluster, or named. A node
        joins once it works, and is drained before it goes: it takes no new connections for the grace of the deletion
        policy, or until those that it has are over.
        """,
        """
        pool:
          subnet: private-subnet
          protocol: HTTP
          protocol_port: 8080
        vip:
          subnet: public-subnet
        health_monitor:
          type: HTTP
          delay: 5
          url_path: /health
        """,
    ),
    "batch": (
        """
        Lets nodes take another profile in batches, so that `min_in_service` of them stay in service, with a pause
        between two batches. A group of a template can do more, with
        [gates and steps](../../howto/roll-out-a-configuration.md).
        """,
        """
        min_in_service: 3
        max_batch_size: 2
        pause_time: 30
        """,
    ),
    "zone_placement": (
        """
        Spreads new nodes over availability zones by their weights, and takes nodes from the zone that is fullest by its
        weight when the cluster shrinks. Nodes that exist are not moved.
        """,
        """
        zones:
          - name: zone-1
            weight: 100
          - name: zone-2
            weight: 50
        """,
    ),
    "region_placement": (
        """
        Spreads new nodes over regions by their weights, none above its `cap`. A node in another region than that of the
        service is a stack there, with the login of that region.
        """,
        """
        regions:
          - name: north
            weight: 2
          - name: south
            weight: 1
            cap: 10
        """,
    ),
    "affinity": (
        """
        Has new nodes made in a server group, which keeps them on hosts of their own or together. The group is made with
        the policy, unless one of its name exists.
        """,
        """
        servergroup:
          name: apart
          policies: anti-affinity
        """,
    ),
    "health": (
        """
        Says when a node is unhealthy, and what recovers it.
        [Keep a cluster healthy](../../howto/keep-a-cluster-healthy.md) shows it at work, and explains each part.
        """,
        """
        detection:
          interval: 60
          failures: 2
          detection_modes:
            - type: LIFECYCLE_EVENTS
            - type: NODE_STATUS_POLL_URL
              options:
                poll_url: http://{nodeip}:8080/health
                poll_url_healthy_response: ok
          vantage_points:
            - name: room-a
            - name: room-b
            - name: office
        recovery:
          max_unhealthy: 40%
          fencing: [COMPUTE]
          preserve: [addresses, volumes]
          actions:
            - name: REBOOT
              params:
                type: SOFT
            - name: RECREATE
        """,
    ),
}
"""Type without its prefix -> what it does, and properties as an example."""


def pages() -> Mapping[str, str]:
    """Name of a type without its prefix -> the text of its page."""
    return {each: _page(each) for each in TEXTS}


def examples() -> Mapping[str, str]:
    """Name of a type -> the text of a spec."""
    return {name: _spec(name) for name in TEXTS}


def _page(short: str) -> str:
    text, _ = TEXTS[short]
    found = next(each for each in POLICY_TYPES.types if each.name == f"senlin.policy.{short}")
    head, *lines = policy_lines(found)
    example = ["```yaml", *_spec(short).splitlines(), "```"]
    use = [
        f"Save it as `{short}.yaml`, and attach it to a cluster:",
        "",
        "```sh",
        f"openstack cluster policy create --spec-file {short}.yaml my-{short.replace('_', '-')}",
        f"openstack cluster policy attach --policy my-{short.replace('_', '-')} CLUSTER",
        "```",
    ]
    words = dedent(text).strip().splitlines()
    return "\n".join([f"# {head}", "", *words, "", "## Example", "", *example, "", *use, "", "## In full", *lines, ""])


def _spec(short: str) -> str:
    version = next(each for each in POLICY_TYPES.types if each.name == f"senlin.policy.{short}").versions[-1]
    lines = "\n".join(f"  {line}" for line in dedent(TEXTS[short][1]).strip().splitlines())
    return f'type: senlin.policy.{short}\nversion: "{version}"\nproperties:\n{lines}\n'
