"""Profiles of stacks, `os.heat.stack`: their schema, and the resources that they become. Pure.

A profile becomes a nested stack made from its template; in another region, a stack there. A failed stack is healed
even with `disable_rollback: false`, since nested stacks follow their parent.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.clustering.decisions.definitions import (
    REMOTE_STACK,
    Definition,
    Terms,
    file_name,
    invalid_spec,
    refuse_functions,
    region_of,
    template_text,
)
from homeostat.clustering.decisions.specs import Operation, SpecType
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.resources.schema import between, boolean, integer, mapping, text
from homeostat.templates import compile_template, parse_environment
from homeostat.templates.environment_merge import MERGED

NESTED_STACK = "AWS::CloudFormation::Stack"
"""Type of a nested stack whose template is named by a property."""

STACK_TYPE = SpecType(
    "os.heat.stack",
    schema={
        "context": mapping("Where the stacks are: region_name.", default={}),
        "template": mapping("The template.", default={}, update=True),
        "template_url": text("Where the template is.", default="", update=True),
        "parameters": mapping("Values for the parameters of the template.", default={}, update=True),
        "files": mapping("Files that the template names.", default={}, update=True),
        "timeout": integer("Minutes that an operation may take.", update=True, constraints=(between(1),)),
        "disable_rollback": boolean("Leave a stack that failed as it is.", default=True, update=True),
        "environment": mapping("Environment of the stack.", default={}, update=True),
    },
    support={"1.0": [{"status": "SUPPORTED", "since": "2016.04"}]},
    operations={"abandon": Operation("Leave the stack to itself.")},
)
_NOT_FOR_REGIONS = "has no way into another region; put it into the template"


def check(properties: Mapping[str, Any]) -> None:
    """Check a profile beyond its schema.

    Raises:
        Rejected: InvalidSpec.
    """
    if not properties["template"] and not properties["template_url"]:
        raise invalid_spec("Both template and template_url are not specified for profile", "properties")
    for name, content in properties["files"].items():
        if not isinstance(content, str):
            raise invalid_spec("The content of a file must be a text", "properties", "files", name)
    try:
        parse_environment(properties["environment"])
    except Rejected as error:
        raise invalid_spec(error.detail, "properties", "environment", *error.path) from error
    refuse_functions(_parameters(properties), ("properties", "parameters"))
    if region_of(properties):
        _check_region(properties)
    if properties["template"]:
        _check_template(properties)


def _check_template(properties: Mapping[str, Any]) -> None:
    """Check a template as far as possible without resource types and clouds."""
    try:
        compile_template(
            properties["template"],
            identity=Identity("", "", ""),
            parameters=properties["parameters"],
            environment=properties["environment"],
            files=properties["files"],
        )
    except Rejected as error:
        raise invalid_spec(error.detail, "properties", "template", *error.path) from error


def _check_region(properties: Mapping[str, Any]) -> None:
    if not properties["template"]:
        raise invalid_spec("A stack in another region needs its template", "properties", "template_url")
    for section, content in properties["environment"].items():
        if content and section != "parameters":
            raise invalid_spec(f"{section} {_NOT_FOR_REGIONS}", "properties", "environment", section)


def define(properties: Mapping[str, Any], terms: Terms) -> Definition:
    """Return the definition of a node.

    For nodes in a group, the caller adds the content of `template_url` to the files of the stack, with the URL as name:
    only the API fetches URLs, and not those in properties of members.

    Args:
        properties: Checked properties of the profile.

    Raises:
        Rejected: InvalidSpec: a policy has chosen another region, which the profile does not support.
    """
    region = region_of(properties, terms.region)
    files = dict(properties["files"])
    timeout = properties["timeout"]
    if region:
        _check_region(properties)
        remote: dict[str, Any] = {
            "context": {"region_name": region},
            "template": template_text(properties["template"]),
            "parameters": _parameters(properties),
            **({"timeout": timeout} if timeout else {}),
        }
        return Definition({"type": REMOTE_STACK, "properties": remote}, files)
    source = properties["template_url"]
    if properties["template"]:
        written = template_text(properties["template"])
        source = file_name(written)
        files[source] = written
    nested: dict[str, Any] = {"TemplateURL": source, "Parameters": _parameters(properties)}
    if timeout:
        nested["TimeoutInMinutes"] = timeout
    environment = {name: section for name, section in properties["environment"].items() if name != MERGED[0]}
    return Definition({"type": NESTED_STACK, "properties": nested}, files, environment)


def _parameters(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the environment, overridden by those of the profile."""
    return {**(properties["environment"].get("parameters") or {}), **properties["parameters"]}
