"""Users, keys and policies of the CloudFormation API, and servers that no cloud manages."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import invalid
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.families.heat import Nothing
from homeostat.resources.graph import Graph
from homeostat.resources.schema import Attribute, Schema, ValueType, integer, length, listing, mapping, one_of, text
from homeostat.resources.support import hidden

USER, KEY, DEPLOYED = "iam_user", "access_key", "deployed_server"
TRANSPORTS = ("POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")
NEEDS = {"ZAQAR_MESSAGE": "Zaqar, to keep messages"}
"""Unsupported transport of configs -> the missing service."""
AGENT: Schema = {
    "software_config_transport": text(
        "How the server gets its configuration.",
        default="POLL_SERVER_CFN",
        update=True,
        constraints=(one_of(*TRANSPORTS),),
    ),
    "deployment_swift_data": mapping(
        "Where configuration is kept in object storage.",
        default={},
        update=True,
        fields={
            "container": text("Container.", constraints=(length(1),)),
            "object": text("Object.", constraints=(length(1),)),
        },
    ),
}
"""Properties of servers whose agent receives software configs."""


def check_config_transport(values: Props, path: tuple[str | int, ...]) -> None:
    """Check that the transport of configs is supported.

    Raises:
        Rejected: The transport needs a service that is not available.
    """
    transport = values.get("software_config_transport")
    needed = NEEDS.get(transport) if isinstance(transport, str) else None
    if needed is not None:
        message = f"{transport} needs {needed}: it is not supported; use POLL_SERVER_CFN or POLL_TEMP_URL"
        raise invalid(message, *path, "software_config_transport", error="Property error")


class AccessPolicy(ResourceType):
    name = "OS::Heat::AccessPolicy"
    description = "Names the resources that a user may describe."
    properties = {"AllowedResources": listing("Names of resources of this stack.", required=True)}

    def reference(self, thing: Thing) -> Any:
        """Its name in the template, by which users refer to it in `Policies`."""
        return thing.name

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        _check_names(properties, "AllowedResources", graph, path)


class User(ResourceType):
    secretive = True
    name = "AWS::IAM::User"
    kind = USER
    description = "A user of the CloudFormation API, who may describe resources of this stack."
    properties = {
        "Path": text("Accepted for old templates."),
        "Groups": listing("Accepted for old templates."),
        "LoginProfile": mapping("A login of the user's own.", fields={"Password": text("Password.")}),
        "Policies": listing("Names of policies of this stack that limit what the user may describe."),
    }

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        _check_names(properties, "Policies", graph, path, AccessPolicy.name)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": physical_name, "policies": values.get("Policies") or []}

    def reference(self, thing: Thing) -> Any:
        """Its name, `<stack>-<resource>-<key>`."""
        return thing.physical_name if thing.handle else thing.name


def _check_names(properties: Props, name: str, graph: Graph, path: tuple[str | int, ...], wanted: str = "") -> None:
    """Check that each item of a list names a resource of this template, and of type `wanted` if given.

    Raises:
        Rejected: An item does not.
    """
    items = properties.get(name)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, str) and (item not in graph or wanted not in ("", graph[item][0])):
            kind = wanted or "resource"
            raise invalid(f"{item} is no {kind} of this template", *path, name, index, error="Property error")


class AccessKey(ResourceType):
    secretive = True
    name = "AWS::IAM::AccessKey"
    kind = KEY
    description = "A key of a user of the CloudFormation API."
    properties = {
        "Serial": integer("Accepted for old templates."),
        "UserName": text("The user that it is for.", required=True),
        "Status": text("Accepted for old templates.", constraints=(one_of("Active", "Inactive"),)),
    }
    attributes = {
        "UserName": Attribute("The user that it is for.", live=True),
        "SecretAccessKey": Attribute("The secret part of the key.", live=True, secret=True),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": physical_name, "user": values["UserName"]}

    def reference(self, thing: Thing) -> Any:
        """Its public part, the access key id."""
        return thing.seen.properties.get("access_key") or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        names = {"UserName": "user", "SecretAccessKey": "secret_key"}
        return thing.seen.properties.get(names[name]) if name in names else super().attribute(thing, name)

    def show(self, thing: Thing) -> Any:
        return {}


class DeployedServer(ResourceType):
    secretive = True
    name = "OS::Heat::DeployedServer"
    kind = DEPLOYED
    description = "A server that no cloud here has made, for deployments: its agent is given the settings by hand."
    properties = {
        "name": text("Name of the server.", update=True),
        "metadata": mapping("Accepted for old templates.", update=True),
        **AGENT,
    }
    unsent = {"metadata", *AGENT}
    attributes = {
        "name": Attribute("Name of the server."),
        "os_collect_config": Attribute("Settings of the configuration agent.", ValueType.MAP, live=True, secret=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        check_config_transport(values, path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": values.get("name") or physical_name, "transport": values["software_config_transport"]}

    def drift(self, thing: Thing) -> tuple[str, ...]:
        return ()

    def show(self, thing: Thing) -> Any:
        return {name: value for name, value in thing.seen.properties.items() if name in ("id", "name")}


class HARestarter(Nothing):
    name = "OS::Heat::HARestarter"
    support = hidden("10.0.0", "Servers that die are healed without it: leave it out.")


def allowed(policies: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the resources that all these policies (name -> properties) allow; None for all resources."""
    if not policies:
        return None
    sets = [frozenset(map(str, policy.get("AllowedResources") or ())) for policy in policies.values()]
    return frozenset.intersection(*sets)


TYPES = [AccessPolicy, User, AccessKey, DeployedServer, HARestarter]
