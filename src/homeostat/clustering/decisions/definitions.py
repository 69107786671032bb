"""Definitions: the resource of a template that a profile becomes for a node. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.specs import Path
from homeostat.model.errors import Rejected, dotted
from homeostat.templates.functions import ordinary_functions

HOT = "2021-04-16"
"""Version of the HOT language of the templates of this package."""
REMOTE_STACK = "OS::Heat::Stack"
"""Type of a resource that is a stack in another region."""
HOME = "default"
"""Name of the service's own region."""
_FUNCTIONS = frozenset(ordinary_functions("heat_template_version", HOT))


@dataclass(frozen=True, slots=True)
class Terms:
    """The facts for the definition of a node besides its profile.

    Attributes:
        name: Name of the node.
        metadata: Additional metadata of the server, see `node_metadata`.
        zone: Availability zone from a policy; "" for the profile's zone.
        server_group: Reference of the server group from a policy: an id, or a template function; None without a group.
        region: Region from a policy, HOME for the service's own; "" for the profile's region.
    """

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""
    server_group: Any = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A resource, and the additions to its stack that it needs.

    Attributes:
        resource: `{type, properties}`.
        files: Name -> text: additional files of the stack.
        environment: Sections to be merged into the environment of the stack.
        server: Name of the server in the resource, if the resource is a nested or remote stack with a server; otherwise
            "". The reference of a nested stack is the id of its server; the reference of a remote stack is the output
            `OS::stack_id` in its attribute `outputs`.
    """

    resource: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""


def region_of(properties: Mapping[str, Any], chosen: str = "") -> str:
    """Return the region of a node; "" for the service's own.

    Args:
        properties: Checked properties of the profile.
        chosen: Region from a policy, or "".
    """
    region = chosen or (properties["context"] or {}).get("region_name") or ""
    return "" if region == HOME else str(region)


def node_metadata(node_id: str, cluster_id: str = "", index: int = -1) -> dict[str, str]:
    """Return the metadata that mark a server as a node, as in Senlin.

    Args:
        cluster_id: Id of the cluster; "" for a node without a cluster.
        index: Index in the cluster.
    """
    member = {"cluster_id": cluster_id, "cluster_node_index": str(index)} if cluster_id else {}
    return {"cluster_node_id": node_id, **member}


def invalid_spec(message: str, *path: str | int) -> Rejected:
    """Return the error for a spec whose properties do not fit together."""
    return Rejected("InvalidSpec", f"{message} (at {dotted(path)})" if path else message)


def refuse_functions(value: Any, path: Path) -> None:
    """Check that no map in a value would be parsed as a function call in a template.

    Raises:
        Rejected: InvalidSpec.
    """
    if isinstance(value, Mapping):
        if len(value) == 1 and (name := next(iter(value))) in _FUNCTIONS:
            raise invalid_spec(
                f"'{name}' alone in a map would be a function of templates; give the map another key", *path
            )
        for key, item in value.items():
            refuse_functions(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            refuse_functions(item, (*path, place))


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the named values without missing and null ones."""
    return {name: values[name] for name in names if values.get(name) is not None}


def template_text(template: Mapping[str, Any]) -> str:
    """Return a template as text; equal templates have equal texts."""
    return json.dumps(template, sort_keys=True)


def file_name(text: str) -> str:
    """Return the name of a template of this package among the files of a stack."""
    return f"homeostat-profile-{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
