"""Profiles: the types of nodes of a cluster. Pure.

spec -> check -> Spec -> define(spec, terms) -> Definition for the cluster's stack
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.clustering.decisions import definitions, server_profile, stack_profile
from homeostat.clustering.decisions.definitions import Definition, Terms, invalid_spec, node_metadata
from homeostat.clustering.decisions.server_profile import SERVER_TYPE
from homeostat.clustering.decisions.specs import Catalogue, Spec, SpecType
from homeostat.clustering.decisions.stack_profile import STACK_TYPE
from homeostat.model.errors import Rejected

SERVER_PROFILE, STACK_PROFILE = SERVER_TYPE.full_name("1.0"), STACK_TYPE.full_name("1.0")
CONTAINER_TYPE = SpecType(
    "container.dockerinc.docker",
    schema={},
    support={"1.0": [{"status": "EXPERIMENTAL", "since": "2017.02"}]},
    refused="containers were experimental, and reached their hosts by unprotected TCP; use a stack with "
    "OS::Zun::Container in a profile of type os.heat.stack-1.0",
)
PROFILE_TYPES = Catalogue("profile_type", (SERVER_TYPE, STACK_TYPE, CONTAINER_TYPE))
CONTEXT_KEYS = frozenset({"region_name"})
"""Keys of the property `context`: Senlin's further keys are credentials, which this service never takes from a spec."""


@dataclass(frozen=True, slots=True)
class _Form:
    check: Callable[[Mapping[str, Any]], None]
    define: Callable[[Mapping[str, Any], Terms], Definition]


_FORMS = {
    SERVER_TYPE.name: _Form(server_profile.check, server_profile.define),
    STACK_TYPE.name: _Form(stack_profile.check, stack_profile.define),
}


def check_profile(spec: Any) -> Spec:
    """Check the spec of a profile.

    Raises:
        Rejected: ESchema, ResourceNotFound or InvalidSpec.
    """
    checked = PROFILE_TYPES.check(spec)
    _check_context(checked.properties["context"] or {})
    _FORMS[checked.type.name].check(checked.properties)
    return checked


def _check_context(context: Mapping[str, Any]) -> None:
    path = ("properties", "context")
    strange = sorted(context.keys() - CONTEXT_KEYS)
    if strange:
        message = f"Some keys in 'context' are invalid: {strange}; there is {', '.join(sorted(CONTEXT_KEYS))}"
        raise invalid_spec(message, *path)
    if not isinstance(context.get("region_name", ""), str | None):
        raise invalid_spec("The name of a region must be a text", *path, "region_name")


def region_of(profile: Spec) -> str:
    """Return the region of a checked profile; "" for the service's own."""
    return definitions.region_of(profile.properties)


def region_problem(profile: Spec) -> str:
    """Return why a policy cannot place the nodes of a checked profile in another region; "" if it can."""
    try:
        define(profile, Terms("node", region="elsewhere"))
    except Rejected as error:
        return f"Policy not applicable: the profile has no way into another region: {error.detail}"
    return ""


def check_named_profile(name: str, spec: Any) -> Spec:
    """Check the spec of a profile to store, as Senlin does: wrong values are an `InvalidSpec`.

    Args:
        name: Name of the profile; "" if the spec is only validated.

    Raises:
        Rejected: ResourceNotFound, or InvalidSpec for everything else.
    """
    try:
        return check_profile(spec)
    except Rejected as error:
        if error.fault == "ResourceNotFound":
            raise
        raise Rejected("InvalidSpec", failed_in_creating(name) + error.message, remedy=error.remedy) from error


def failed_in_creating(name: str) -> str:
    """Return the start of the error message for a refused profile; "" without a name."""
    return f"Failed in creating profile {name}: " if name else ""


def define(profile: Spec, terms: Terms) -> Definition:
    """Return the definition of a node.

    Raises:
        Rejected: InvalidSpec: the terms do not fit the profile.
    """
    return _FORMS[profile.type.name].define(profile.properties, terms)


def check_same_type(before: str, after: str, what: str = "cluster") -> None:
    """Check that a new profile has the type of the former profile.

    Args:
        before: Type of the former profile, with its version.
        after: Type of the new profile, with its version.
        what: `cluster` or `node`.

    Raises:
        Rejected: BadRequest.
    """
    if before != after:
        message = f"Cannot update a {what} to a different profile type, operation aborted."
        raise Rejected("BadRequest", message, remedy=f"it is {before}; the new profile is {after}")


def check_type_of_node(cluster: str, node: str) -> None:
    """Check that a new node of a cluster has a profile of the cluster's type.

    Raises:
        Rejected: BadRequest.
    """
    if cluster != node:
        message = "Node and cluster have different profile type, operation aborted."
        raise Rejected("BadRequest", message, remedy=f"that of the cluster is {cluster}, that of the node {node}")


__all__ = [
    "PROFILE_TYPES",
    "SERVER_PROFILE",
    "STACK_PROFILE",
    "Definition",
    "Terms",
    "check_named_profile",
    "check_profile",
    "check_same_type",
    "check_type_of_node",
    "define",
    "failed_in_creating",
    "node_metadata",
    "region_of",
    "region_problem",
]
