"""What a profile becomes: the definition of one resource in the language of templates. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.specs import Path
from homeostat.model.errors import Rejected, dotted
from homeostat.templates.functions import ordinary_functions

HOT = "2021-04-16"
"""Version of the language in which the templates of this package are written."""
REMOTE_STACK = "OS::Heat::Stack"
"""Type of a resource that is a stack in another region."""
HOME = "default"
"""Name of the region that the service itself is."""
_FUNCTIONS = frozenset(ordinary_functions("heat_template_version", HOT))


@dataclass(frozen=True, slots=True)
class Terms:
    """What the definition of a node needs besides its profile.

    Attributes:
        name: Name of the node.
        metadata: What is added to the metadata of its server, see `node_metadata`.
        zone: Availability zone that a policy has chosen; "" for that of the profile.
        server_group: Reference of the server group that a policy has chosen: an id, or a function of templates that
            gives it; None for none.
        region: Region that a policy has chosen, HOME for the service's own; "" for that of the profile.
    """

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""
    server_group: Any = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A resource, and what has to be beside it in its stack.

    Attributes:
        resource: `{type, properties}`.
        files: Name -> text, to be among the files of the stack.
        environment: Sections to be merged into the environment of the stack.
        server: Name of the server in the nested or remote stack that the resource is; "" if the resource itself is
            the server, or if there is none. The reference of a nested stack is the id of its server; that of a remote
            one is in its attribute `outputs`, as `OS::stack_id`.
    """

    resource: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""


def region_of(properties: Mapping[str, Any], chosen: str = "") -> str:
    """Return the region that a node is in; "" for the service's own.

    Args:
        properties: Checked properties of its profile.
        chosen: Region that a policy has chosen; "" for none.
    """
    region = chosen or (properties["context"] or {}).get("region_name") or ""
    return "" if region == HOME else str(region)


def node_metadata(node_id: str, cluster_id: str = "", index: int = -1) -> dict[str, str]:
    """Return the metadata by which a server is known as a node, as in Senlin.

    Args:
        cluster_id: Id of its cluster; "" for a node without one.
        index: Index in the cluster.
    """
    member = {"cluster_id": cluster_id, "cluster_node_index": str(index)} if cluster_id else {}
    return {"cluster_node_id": node_id, **member}


def invalid_spec(message: str, *path: str | int) -> Rejected:
    """Return the error for a spec whose properties do not fit together."""
    return Rejected("InvalidSpec", f"{message} (at {dotted(path)})" if path else message)


def refuse_functions(value: Any, path: Path) -> None:
    """Check that no map in a value would be read as the call of a function where it stands in a template.

    Raises:
        Rejected: InvalidSpec.
    """
    if isinstance(value, Mapping):
        if len(value) == 1 and (name := next(iter(value))) in _FUNCTIONS:
            raise invalid_spec(
                f"'{name}' alone in a map would be a function of templates; give the map another key", *path
            )
        for key, each in value.items():
            refuse_functions(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            refuse_functions(each, (*path, place))


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named values that are neither missing nor null."""
    return {name: values[name] for name in names if values.get(name) is not None}


def template_text(template: Mapping[str, Any]) -> str:
    """Return a template as text; equal templates have equal texts."""
    return json.dumps(template, sort_keys=True)


def file_name(text: str) -> str:
    """Return the name under which a text of this package is among the files of a stack."""
    return f"homeostat-profile-{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
