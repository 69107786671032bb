"""Types of software configs: documents for servers, stored by the service itself and immutable."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from homeostat.model.errors import invalid
from homeostat.resources import mime
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Schema,
    anything,
    boolean,
    coerce_value,
    length,
    listing,
    mapping,
    one_of,
    text,
    with_defaults,
)
from homeostat.templates import parameters

CONFIG = "software_config"
UNGROUPED = "Heat::Ungrouped"
ACTIONS = ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME")
_KINDS = one_of("String", "Number", "CommaDelimitedList", "Json", "Boolean")

_CONVERT = {kind.wire: kind.convert for kind in parameters.TYPES.values() if kind.wire != "String"}
"""Type of inputs -> conversion of their values. Values of the type String are not converted."""

INPUTS = listing(
    "Values that the config takes.",
    items=mapping(
        fields={
            "name": text("Name of the input.", required=True),
            "description": text("What it is for."),
            "type": text("Type of the value.", default="String", constraints=(_KINDS,)),
            "default": anything("Value where none is given."),
            "replace_on_change": boolean("Another value makes the deployment anew.", default=False),
        }
    ),
)
OUTPUTS = listing(
    "Values that the config gives.",
    items=mapping(
        fields={
            "name": text("Name of the output.", required=True),
            "description": text("What it tells."),
            "type": text("Type of the value.", default="String", constraints=(_KINDS,)),
            "error_output": boolean("That it is given at all means failure.", default=False),
        }
    ),
)
_COMMON: Schema = {
    "group": text("Tool of the server that applies the config.", default=UNGROUPED),
    "options": mapping("Options for that tool."),
    "inputs": INPUTS,
    "outputs": OUTPUTS,
}
_ATTRIBUTES = {"config": Attribute("The config as it is stored.")}


def normal_inputs(value: Any) -> list[dict[str, Any]]:
    """Convert inputs to the stored form: `{name, type, description?, default?, replace_on_change?, value?}`.

    Raises:
        Rejected: An input is wrong; the error has its path.
    """
    # Derived configs have values in their inputs, which the schema (the same as for templates) does not allow.
    listed = value if isinstance(value, list) else []
    values = {index: entry["value"] for index, entry in enumerate(listed) if _has_value(entry)}
    plain = [_without_value(entry) for entry in listed] if listed else value
    entries = _normal("inputs", plain)
    for entry in entries:
        if not entry.get("replace_on_change"):
            entry.pop("replace_on_change", None)
    return [{**entry, "value": values[index]} if index in values else entry for index, entry in enumerate(entries)]


def normal_outputs(value: Any) -> list[dict[str, Any]]:
    """Convert outputs to the stored form: `{name, type, description?, error_output}`.

    Raises:
        Rejected: An output is wrong; the error has its path.
    """
    return _normal("outputs", value)


def _normal(name: str, value: Any) -> list[dict[str, Any]]:
    prop = INPUTS if name == "inputs" else OUTPUTS
    values = coerce_value(prop, value, (name,))
    for index, entry in enumerate(values if name == "inputs" else ()):
        _check_default(entry, (name, index, "default"))
    fields = prop.items.fields if prop.items is not None and prop.items.fields is not None else {}
    return [
        {key: value for key, value in with_defaults(fields, entry).items() if value is not None} for entry in values
    ]


def _check_default(entry: Mapping[str, Any], path: Sequence[str | int]) -> None:
    """Check that the default of an input can be converted to its type, as for parameters; "" means no default.

    Raises:
        Rejected: The conversion fails.
    """
    default = entry.get("default")
    if entry.get("type") not in _CONVERT or default is None or default == "" or default is UNKNOWN:
        return
    try:
        _CONVERT[entry["type"]](default)
    except ValueError as error:
        raise invalid(str(error), *path, error="Property error") from error


def _has_value(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "value" in entry


def _without_value(entry: Any) -> Any:
    return {key: value for key, value in entry.items() if key != "value"} if isinstance(entry, Mapping) else entry


class Config(ResourceType):
    """Base of the types of configs; `document` builds the stored config from the properties."""

    secretive = True
    kind = CONFIG
    attributes = _ATTRIBUTES

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {
            "name": physical_name,
            "group": values.get("group") or UNGROUPED,
            "config": self.document(values),
            "options": values.get("options") or {},
            "inputs": normal_inputs(values.get("inputs") or []),
            "outputs": normal_outputs(values.get("outputs") or []),
        }

    def document(self, values: Props) -> Any:
        """Return the config built from the properties, which include defaults."""
        return values.get("config") or ""

    def drift(self, thing: Thing) -> tuple[str, ...]:
        return ()


class SoftwareConfig(Config):
    name = "OS::Heat::SoftwareConfig"
    description = "A script or document for servers."
    properties = {**_COMMON, "config": text("The script or document.")}


class StructuredConfig(Config):
    name = "OS::Heat::StructuredConfig"
    description = "A map for servers, in which deployments put values for its inputs."
    properties = {**_COMMON, "config": mapping("The map.")}

    def document(self, values: Props) -> Any:
        return values.get("config") or {}


class CloudConfig(Config):
    name = "OS::Heat::CloudConfig"
    description = "A document of cloud-init for servers."
    properties = {"cloud_config": mapping("The document.")}
    unsent = {"cloud_config"}

    def document(self, values: Props) -> Any:
        return "#cloud-config\n" + yaml.safe_dump(values.get("cloud_config") or {})


class MultipartMime(Config):
    """A MIME document, assembled by `builtin.kinds.configs`, which can read the configs of its parts."""

    name = "OS::Heat::MultipartMime"
    description = "Several configs as the parts of one MIME document."
    properties = {
        "group": text("Tool of the server that applies the config.", default=UNGROUPED),
        "parts": listing(
            "The parts, in their order.",
            default=[],
            items=mapping(
                fields={
                    "config": text("Content, or id of a config.", required=True),
                    "filename": text("Name of the part."),
                    "type": text(
                        "Whether it is a part, or a document with parts of its own that are put in its place.",
                        default="text",
                        constraints=(one_of("text", "multipart"),),
                    ),
                    "subtype": text("What kind of text it is; otherwise the ending of the file name says it."),
                }
            ),
        ),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {**super().spec(values, physical_name), "parts": values.get("parts") or []}


def assembled(parts: list[Mapping[str, Any]], stored: Mapping[str, Any]) -> str:
    """Return the MIME document of these parts.

    Args:
        parts: As in the property `parts`.
        stored: Content of the stored configs by id.
    """
    content_parts: list[mime.Part] = []
    for entry in parts:
        content = entry["config"]
        content = str(stored.get(content, content))
        inner = mime.split(content) if entry.get("type") == "multipart" else None
        if inner is not None:
            content_parts += inner
        else:
            content_parts.append(mime.Part(content, _subtype(entry), entry.get("filename") or ""))
    return mime.multipart(content_parts)


def _subtype(part: Mapping[str, Any]) -> str:
    ending = PurePosixPath(part.get("filename") or "").suffix.lstrip(".")
    return part.get("subtype") or ending or "plain"


class SoftwareComponent(Config):
    name = "OS::Heat::SoftwareComponent"
    description = "Configs for the actions in the life of a component."
    properties = {
        "configs": listing(
            "The configs, each for some actions.",
            required=True,
            constraints=(length(1),),
            items=mapping(
                fields={
                    "actions": listing(
                        "When it is applied.",
                        default=["CREATE", "UPDATE"],
                        constraints=(length(1),),
                        items=text(constraints=(one_of(*ACTIONS),)),
                    ),
                    "config": text("The script or document."),
                    "tool": text("Tool of the server that applies it.", required=True),
                }
            ),
        ),
        **{name: prop for name, prop in _COMMON.items() if name != "group"},
    }
    unsent = {"configs"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that no action is in more than one of the configs."""
        seen: set[str] = set()
        configs = values.get("configs")
        for index, config in enumerate(configs if isinstance(configs, list) else ()):
            actions = config.get("actions", ["CREATE", "UPDATE"]) if isinstance(config, Mapping) else []
            for action in actions if isinstance(actions, list) else ():
                if action is UNKNOWN:
                    continue
                twice = action in seen
                require(not twice, f"the action {action} is in more than one config", (*path, "configs", index))
                seen.add(action)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {**super().spec(values, physical_name), "group": "component"}

    def document(self, values: Props) -> Any:
        return {"configs": values["configs"]}


def from_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a config from a request of the API to the stored form.

    Raises:
        Rejected: A field is wrong; the error has its path.
    """
    options = body.get("options") or {}
    if not isinstance(options, Mapping):
        raise invalid("it must be a map", "options")
    return {
        "name": str(body.get("name") or ""),
        "group": str(body.get("group") or UNGROUPED),
        "config": body.get("config") if body.get("config") is not None else "",
        "options": dict(options),
        "inputs": normal_inputs(body.get("inputs") or []),
        "outputs": normal_outputs(body.get("outputs") or []),
    }


TYPES = [SoftwareConfig, StructuredConfig, CloudConfig, MultipartMime, SoftwareComponent]
