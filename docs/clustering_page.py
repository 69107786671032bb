"""The page of the types of profiles and policies of clusters."""

import json
from collections.abc import Iterator
from typing import Any

from docs.type_pages import row

from homeostat.clustering.decisions.placeholders import KNOWN
from homeostat.clustering.decisions.policies import POLICY_TYPES, PolicyKind, policy_kind
from homeostat.clustering.decisions.profiles import PROFILE_TYPES
from homeostat.clustering.decisions.server_profile import IN_PLACE_TOO
from homeostat.clustering.decisions.specs import SpecType, wire_schema

HEAD = """\
# Profiles and policies

The types of profiles and policies of the Clustering API, and their properties. A spec is
`{type, version, properties}`, for a policy also `description`. It is kept as it was sent; a property that is not there
has its default. A value that does not fit is refused (400), and the message names its place and what would fit.

*Update* says what another profile of the same type does to the nodes that exist: `in place`, or `new` where they are
made again. `a.b` is the key `b` of the map `a`, `a[].b` that of each item of the list `a`. **Bold**: required.

## Profiles
""".splitlines()

SERVERS = """
A node is an `OS::Nova::Server` with the name of the node and with the metadata `cluster_node_id`, `cluster_id` and
`cluster_node_index`. With a `floating_network`, with security groups of single networks, or with an empty volume it is
a nested stack, in which ports, addresses and volumes stand beside the server; with a region in `context`, a stack
there. Not expressed: a `floating_ip` that the project has already, and files with contents that are no text.
"""

STACKS = """
A node is a nested stack made from the template, with the parameters of the profile over those of its environment. Its
other sections join the environment of the cluster. With a region in `context` it is a stack there, with parameters
only. Not expressed: `disable_rollback: false`; nested stacks do as the cluster does.
"""

POLICIES = """\
## Policies

A cluster has one policy of each type, but any number for scaling. They act in the order of their priorities, the
smallest first.
""".splitlines()

HEALTH = """
What differs from Senlin in what a policy may say:

- Several `actions` are tried one by one until the node is healthy; without any, it is `RECREATE`. The `params` of an
  action count: `type` (`SOFT`, `HARD`) for `REBOOT`, `image` for `REBUILD`, `fence_compute` for `RECREATE`.
- An action may have a `type`, and a `timeout` in seconds then. `MISTRAL_WORKFLOW` runs the workflow that is its `name`,
  with `params` as its input; one that does not end in time is cancelled. `WEBHOOK` sends a request: `params` are `url`,
  `method` (`POST`, `PUT`, `GET`), `headers` and `body`, a map that is sent as JSON; without one it is what is known
  of the node. A 2xx ends it, another answer fails it; without an answer in 30 s, after a 5xx, 408, 425 or 429 it
  is sent again, with the same `Idempotency-Key`. For a node that does not exist any more neither is called.
- `LIFECYCLE_EVENTS` and modes that poll go together, and `LB_STATUS_POLLING` works where a policy of type
  `senlin.policy.loadbalance` is attached.
- `poll_url` is needed for `NODE_STATUS_POLL_URL`. It knows the placeholders
  PLACEHOLDERS; another one is refused.
  `params` know them too, and as `{{ node.name }}`, `{{ node.id }}`, `{{ node.physicalid }}`, `{{ node.ip }}`,
  `{{ cluster.name }}` and `{{ cluster.id }}`.
- A node whose URL gives no good answer in `poll_url_retry_limit` attempts in all is unhealthy.
- A host that takes no new servers is not down, unless `hypervisor_disabled_as_unhealthy` says so: it may be in
  maintenance. Only administrators may see hosts; for others, `HYPERVISOR_STATUS_POLLING` finds nothing.
- `poll_url_conn_error_as_unhealty`, `poll_url_conn_error_as_unheathy` and the former form
  `detection: {type, options: {interval, …}}` are understood, with a warning.
- `fencing` is done before an action, in the order COMPUTE, NETWORK, STORAGE. `hosts` of `GET …/health` says why a host
  is declared down by it, since when, and what lifts that: this service never does.
- `quorum`, `vantage_points`, `mode`, `max_unhealthy`, `one_first`, `inside_first` and `preserve`, among others, are
  this service's own. With more unhealthy nodes than `max_unhealthy`, none is recovered.
- `preserve` is for nodes that are a server by itself: others have ports and volumes beside it. Which of several volumes
  was made for which device cannot be told; of such a server those that were attached besides are kept.
""".replace("PLACEHOLDERS", ", ".join(f"`{{{name}}}`" for name in KNOWN))

NOTES = {"os.nova.server": SERVERS, "os.heat.stack": STACKS, "senlin.policy.health": HEALTH}


def page() -> str:
    lines = [*HEAD]
    for each in PROFILE_TYPES.types:
        lines += _profile(each)
    lines += ["", *POLICIES]
    lines += ["", "| type | priority | fits | acts before |", "|---|---|---|---|"]
    for each in sorted(POLICY_TYPES.types, key=lambda each: _kind(each).priority):
        kind, short = _kind(each), each.name.removeprefix("senlin.policy.")
        link = f"[`{each.name}`](policies/{short}.md)"
        lines.append(row(link, str(kind.priority), _fits(kind), _listed(kind.before)))
    return "\n".join([*lines, ""])


def policy_lines(spec_type: SpecType) -> list[str]:
    """Return the name of a type of policies, and all about it."""
    return [spec_type.name, *_policy(spec_type)]


def _kind(spec_type: SpecType) -> PolicyKind:
    return policy_kind(spec_type.full_name(spec_type.versions[0]))


def _head(spec_type: SpecType) -> Iterator[str]:
    yield from ("", f"### {spec_type.name}", "")
    yield f"Versions: {', '.join(f'`{version}`' for version in spec_type.versions)}."


def _profile(spec_type: SpecType) -> Iterator[str]:
    yield from _head(spec_type)
    if spec_type.refused:
        yield from ("", f"Refused: {spec_type.refused}.")
        return
    yield from NOTES[spec_type.name].rstrip().splitlines()
    yield from ("", "| property | type | default | update | |", "|---|---|---|---|---|")
    yield from _properties(wire_schema(spec_type.schema), "", with_update=True)
    yield from ("", "| operation | parameters | |", "|---|---|---|")
    for name, operation in spec_type.operations.items():
        parameters = ", ".join(f"`{each}`" for each in operation.parameters)
        yield row(f"`{name}`", parameters, operation.description)


def _policy(spec_type: SpecType) -> Iterator[str]:
    kind = _kind(spec_type)
    yield from ("", f"Versions: {', '.join(f'`{version}`' for version in spec_type.versions)}.")
    yield from ("", f"Priority {kind.priority}. Fits {_fits(kind)}. Acts before {_listed(kind.before)}" + _after(kind))
    yield from NOTES.get(spec_type.name, "").rstrip().splitlines()
    yield from ("", "| property | type | default | |", "|---|---|---|---|")
    yield from _properties(wire_schema(spec_type.schema), "", with_update=False)


def _fits(kind: PolicyKind) -> str:
    return "clusters of servers" if kind.servers_only else "every cluster"


def _after(kind: PolicyKind) -> str:
    return f", and after {_listed(kind.after)}." if kind.after else "."


def _listed(actions: frozenset[str]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(actions))


def _properties(schema: dict[str, Any], before: str, *, with_update: bool) -> Iterator[str]:
    for name, each in sorted(schema.items()):
        called = f"`{before}{name}`"
        default = f"`{json.dumps(each['default'])}`" if "default" in each else ""
        in_place = each["updatable"] or name in IN_PLACE_TOO
        update = [("in place" if in_place else "new") if not before else ""] if with_update else []
        text = " ".join(filter(None, (each.get("description", ""), *_constraints(each))))
        yield row(f"**{called}**" if each["required"] else called, each["type"], default, *update, text)
        inner = each.get("schema", {})
        if "*" in inner:
            yield from _properties(inner["*"].get("schema", {}), f"{before}{name}[].", with_update=with_update)
        else:
            yield from _properties(inner, f"{before}{name}.", with_update=with_update)


def _constraints(each: dict[str, Any]) -> Iterator[str]:
    inner = each.get("schema", {}).get("*", {})
    for rule in (*each.get("constraints", ()), *(inner.get("constraints", ()) if "schema" not in inner else ())):
        if rule["type"] == "AllowedValues":
            yield "One of " + ", ".join(f"`{value}`" for value in rule["constraint"]) + "."
        else:
            limits = rule["constraint"]
            yield f"At least {limits['min']}" + (f", at most {limits['max']}." if "max" in limits else ".")
