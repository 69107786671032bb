"""Whether a template can be right at all, judged by rules of the language, apart from the code that is tested.

Only rules that every implementation must have are here; nothing of the package is used but for comparison.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from conformance.corpus import Case, types_within

HOT_VERSIONS = frozenset(
    (
        *("2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14", "2017-02-24"),
        *(
            "2017-09-01",
            "2018-03-02",
            "2018-08-31",
            "2021-04-16",
            "newton",
            "ocata",
            "pike",
            "queens",
            "rocky",
            "wallaby",
        ),
    )
)
WITHOUT_CONDITIONS = frozenset(("2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08"))
PARAMETER_TYPES = frozenset(("string", "number", "comma_delimited_list", "json", "boolean"))
RESOURCE_KEYS = frozenset(
    (
        "type",
        "properties",
        "metadata",
        "depends_on",
        "update_policy",
        "deletion_policy",
        "description",
        "condition",
        "external_id",
    )
)
SECTIONS = frozenset(("description", "parameter_groups", "parameters", "resources", "outputs", "conditions"))
PSEUDO = frozenset(("OS::stack_name", "OS::stack_id", "OS::project_id"))


class _Loader(yaml.SafeLoader):
    """Dates stay text, as versions are written."""

    yaml_implicit_resolvers = {
        key: [(tag, regex) for tag, regex in each if tag != "tag:yaml.org,2002:timestamp"]
        for key, each in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def verdict(case: Case) -> str:
    """Why a template cannot be accepted, itself or one that it uses as a type; "" if nothing is known against it."""
    found = problem(case.text, case.environment)
    if found or not isinstance(case.template, dict):
        return found
    used = {name for name in types_within(case.template) if name in case.files}
    inner = ((name, problem(case.files[name], {})) for name in sorted(used))
    return next(
        (f"a template that it uses is wrong: {name.rpartition('/')[2]}: {why}" for name, why in inner if why), ""
    )


def problem(text: str, environment: Mapping[str, Any]) -> str:
    """Why the text of a template cannot be accepted: a rule, and after a colon what breaks it; "" for nothing known."""
    try:
        document = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        return f"it is not YAML: {type(error).__name__}"
    if not isinstance(document, dict):
        return "it is not a map"
    if "heat_template_version" in document:
        return next(_hot(document, environment), "")
    if not ({"HeatTemplateFormatVersion", "AWSTemplateFormatVersion"} & document.keys()):
        return "it names no version"
    return next(_cfn(document), "")


def _hot(document: dict[str, Any], environment: Mapping[str, Any]) -> Iterator[str]:
    version = document["heat_template_version"]
    version = version.isoformat() if isinstance(version, datetime.date) else str(version)
    if version not in HOT_VERSIONS:
        yield f"there is no such version: {version}"
    for name in document.keys() - SECTIONS - {"heat_template_version"}:
        yield f"there is no such section: {name}"
    if "conditions" in document and version in WITHOUT_CONDITIONS:
        yield f"its version has no section conditions: {version}"
    parameters, resources = document.get("parameters") or {}, document.get("resources") or {}
    if not isinstance(parameters, dict) or not isinstance(resources, dict):
        yield "parameters and resources are maps"
        return
    for name, each in parameters.items():
        if not isinstance(each, dict) or each.get("type") not in PARAMETER_TYPES:
            yield f"a parameter has no known type: {name}"
    for name in environment.get("parameters") or {}:
        if name not in parameters:
            yield f"its environment has a parameter that it does not declare: {name}"
    for name, each in resources.items():
        if not isinstance(each, dict) or not isinstance(each.get("type"), str):
            yield f"a resource has no type: {name}"
        else:
            yield from (f"a resource has an unknown key: {name}, {key}" for key in each.keys() - RESOURCE_KEYS)
    for function, name in _references([resources, document.get("outputs")], ("get_param", "get_resource", "get_attr")):
        known = parameters.keys() | PSEUDO if function == "get_param" else resources.keys()
        if name not in known:
            yield f"a function names what is not declared: {function} {name}"
    for name, each in resources.items():
        after = each.get("depends_on") if isinstance(each, dict) else None
        for other in after if isinstance(after, list) else [after]:
            if isinstance(other, str) and other not in resources:
                yield f"a resource depends on what is not declared: {name}, {other}"


def _cfn(document: dict[str, Any]) -> Iterator[str]:
    parameters, resources = document.get("Parameters") or {}, document.get("Resources") or {}
    for name, each in resources.items():
        if not isinstance(each, dict) or not isinstance(each.get("Type"), str):
            yield f"a resource has no type: {name}"
    for function, name in _references([resources, document.get("Outputs")], ("Ref", "Fn::GetAtt")):
        known = resources.keys() | (parameters.keys() if function == "Ref" else ())
        if name not in known and not name.startswith("AWS::"):
            yield f"a function names what is not declared: {function} {name}"


def _references(part: Any, functions: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Calls of these functions: the function and what it names."""
    pending = [part]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if len(each) == 1:
                ((function, argument),) = each.items()
                name = argument[0] if isinstance(argument, list) and argument else argument
                if function in functions and isinstance(name, str):
                    yield function, name
            pending += each.values()
        elif isinstance(each, list):
            pending += each
