"""External requirements of a template: collected by the checks, looked up by `prerequisites` and `regions`."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.desired.implied import files_named
from homeostat.identity.stack_users import TRANSPORTS
from homeostat.resources.base import ResourceType
from homeostat.resources.custom_constraints import Mention, Path, mentions, of_parameter
from homeostat.resources.schema import UNKNOWN
from homeostat.templates import Compiled, Parameter

WITHOUT_LOGIN = {
    "signal_transport": "use CFN_SIGNAL or TEMP_URL_SIGNAL",
    "software_config_transport": "use POLL_SERVER_CFN or POLL_TEMP_URL",
}
"""Properties that select how a server talks to the service, and the values that work without users for servers."""

Thing = tuple[str, str]
"""Kind, and name or id."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A stack that a template creates independently (`OS::Heat::Stack`).

    Attributes:
        region: "" for the service's own region.
        template: Text of the template; None while unknown.
        parameters: Unknown values are `UNKNOWN`.
        files: Files that the template names.
        path: Path of the resource's properties.
    """

    region: str
    template: str | None
    parameters: Mapping[str, Any]
    files: Mapping[str, str]
    path: Path


def remote_of(values: Mapping[str, Any], files: Mapping[str, str], path: Path) -> Remote:
    """Return the stack that a resource creates.

    Args:
        values: Coerced properties of the resource.
        files: Files of the stack that the resource belongs to.
        path: Path of the resource.
    """
    context, template, parameters = (values.get(name) for name in ("context", "template", "parameters"))
    region = context.get("region_name") if isinstance(context, Mapping) else context
    text = template if isinstance(template, str) and region is not UNKNOWN else None
    return Remote(
        region if isinstance(region, str) else "",
        text,
        parameters if isinstance(parameters, Mapping) else {},
        files_named(values, files) if text is not None else {},
        (*path, "properties"),
    )


@dataclass(slots=True)
class Requirements:
    """External requirements of a template and all its nested templates, collected during the checks.

    Of equal mentions, types and logins only the first place is kept, so that repetition in a template costs nothing.

    Attributes:
        mentions: Values that name a thing of the cloud.
        types: Type -> first place of its use.
        created: Things that the template itself creates under given names.
        nested: Nested stacks by the names of their resources, as far as known.
        logins: Transports with which a server logs in -> place.
        remotes: Stacks that the template creates independently, here or in other regions.
        urls: URLs that this service will poll -> place.
        resources: Resources of the whole tree, as far as known.
        stacks: Nested stacks of the whole tree.
        secret: A template of the tree holds a secret.
    """

    mentions: dict[Hashable, Mention] = field(default_factory=dict)
    types: dict[str, Path] = field(default_factory=dict)
    created: set[Thing] = field(default_factory=set)
    nested: "dict[str, Nested]" = field(default_factory=dict)
    logins: dict[str, Path] = field(default_factory=dict)
    remotes: dict[Hashable, Remote] = field(default_factory=dict)
    urls: dict[str, Path] = field(default_factory=dict)
    resources: int = 0
    stacks: int = 0
    secret: bool = False

    def of_parameters(self, parameters: Mapping[str, Parameter]) -> None:
        """Add the things that constraints of parameters name."""
        for name, parameter in parameters.items():
            for constraint in parameter.schema.constraints:
                if constraint.custom:
                    self._mention(of_parameter(name, constraint.custom, parameter.value, constraint.description))

    def _mention(self, new_mentions: Iterable[Mention]) -> None:
        for mention in new_mentions:
            self.mentions.setdefault(
                (mention.constraint, repr(mention.value), mention.parameter, mention.instead), mention
            )

    def add(self, nested: "Requirements", path: Path) -> None:
        """Add the requirements of a nested template.

        Args:
            path: Path of the nested stack's resource.
        """
        for key, mention in nested.mentions.items():
            if key not in self.mentions:
                self.mentions[key] = replace(mention, path=(*path, *mention.path))
        for type_name, place in nested.types.items():
            self.types.setdefault(type_name, (*path, *place))
        self.created |= nested.created
        for transport, place in nested.logins.items():
            self.logins.setdefault(transport, (*path, *place))
        for url, place in nested.urls.items():
            self.urls.setdefault(url, (*path, *place))
        for key, remote in nested.remotes.items():
            if key not in self.remotes:
                self.remotes[key] = replace(remote, path=(*path, *remote.path))
        self.resources += nested.resources
        self.stacks += 1 + nested.stacks

    def of_remote(self, remote: Remote) -> None:
        """Add a stack that the template creates independently."""
        self.remotes.setdefault((remote.region, remote.template, repr(remote.parameters)), remote)

    def of_resource(self, kind: ResourceType, values: Mapping[str, Any], path: Path) -> None:
        """Add the requirements of a resource.

        Args:
            values: Coerced properties.
            path: Path of the resource.
        """
        self.types.setdefault(kind.name, path)
        self._mention(mentions(kind.properties, values, (*path, "properties")))
        for setting in WITHOUT_LOGIN:
            if values.get(setting) in TRANSPORTS:
                self.logins.setdefault(values[setting], (*path, "properties", setting))
        name = values.get("name")
        if isinstance(name, str) and name:
            self.created.add((kind.kind, name))


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested stack of a template.

    Attributes:
        type: As the template names it.
        compiled: None for a group or chain, which has no template.
        needs: External requirements of its contents.
    """

    type: str
    compiled: Compiled | None
    needs: Requirements
