"""Values for parameters that nobody gives: by what they are used for, by their constraints, by their names, by type."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.corpus import Case, Document
from homeostat.model.errors import Rejected
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import types
from homeostat.resources.schema import Property, ValueType
from homeostat.templates import parse_template

KEY = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7 made@up"
ID = "6a7c4b52-0d9f-4f0c-9a55-3f1c7f2ab001"
BY_CONSTRAINT = {
    "ip_addr": "10.0.0.10",
    "net_cidr": "10.0.0.0/24",
    "ip_or_cidr": "10.0.0.0/24",
    "mac_addr": "fa:16:3e:00:00:01",
    "dns_name": "www.example.com.",
    "rel_dns_name": "www",
    "dns_domain": "example.com.",
    "cron_expression": "0 0 * * *",
    "timezone": "UTC",
    "iso_8601": "P1D",
    "expiration": "2030-01-01T00:00:00",
    "json_string": "{}",
}
BY_NAME = (
    ("cidr", "10.0.0.0/24"),
    ("gateway", "10.0.0.1"),
    ("netmask", "255.255.255.0"),
    ("prefix", "24"),
    ("mac", "fa:16:3e:00:00:01"),
    ("ip_version", "4"),
    ("start", "10.0.0.10"),
    ("end", "10.0.0.99"),
    ("ip", "10.0.0.10"),
    ("address", "10.0.0.10"),
    ("dns", "10.0.0.2"),
    ("public_key", KEY),
    ("size", "1"),
    ("count", "1"),
    ("port", "8080"),
    ("timeout", "60"),
    ("vlan", "101"),
    ("url", "http://server.example.com/"),
    ("email", "made.up@example.com"),
)
TEXTS = (
    "madeup",
    "Madeup1",
    "a",
    "1",
    "A1b2C3d4",
    "10.0.0.10",
    "10.0.0.0/24",
    ID,
    "m1.small",
    "MADE_UP",
    "Aa1!Aa1!Aa1!",
)
"""What is tried until the constraints of a parameter agree."""


@dataclass(slots=True)
class Use:
    """What a template does with one parameter: properties that it is the value of, and paths into it."""

    properties: list[Property] = field(default_factory=list)
    paths: list[tuple[Any, ...]] = field(default_factory=list)
    leaves: list[tuple[tuple[Any, ...], Property]] = field(default_factory=list)
    """Properties that have what such a path leads to."""
    iterated: bool = False
    index: bool = False
    nested: list[tuple[str, str]] = field(default_factory=list)
    """Templates among the files, and their parameters, that it is handed to."""


def made_up(case: Case) -> dict[str, Any]:
    """Values for the parameters without a default to which the environment gives none."""
    if not isinstance(case.template, dict):
        return {}
    given = {**(case.environment.get("parameter_defaults") or {}), **(case.environment.get("parameters") or {})}
    return _of_template(case.template, case.files, given.keys(), 0)


def _of_template(template: Document, files: Mapping[str, str], given: Iterable[str], depth: int) -> dict[str, Any]:
    section = template.get("parameters", template.get("Parameters"))
    if not isinstance(section, dict):
        return {}
    uses = _uses(template)
    wanted = {
        name: _lower(each)
        for name, each in section.items()
        if name not in given and isinstance(each, dict) and not {"default", "Default"} & each.keys()
    }
    return {name: _value(name, each, uses.get(name, Use()), files, depth) for name, each in wanted.items()}


def _lower(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter of either language with the keys of HOT."""
    if "Type" not in entry:
        return dict(entry)
    kinds = {"String": "string", "Number": "number", "CommaDelimitedList": "comma_delimited_list", "Json": "json"}
    rules: list[dict[str, Any]] = []
    if "AllowedValues" in entry:
        rules.append({"allowed_values": entry["AllowedValues"]})
    for low, high, rule in (("MinLength", "MaxLength", "length"), ("MinValue", "MaxValue", "range")):
        if entry.keys() & {low, high}:
            rules.append({rule: {"min": entry.get(low, 0), "max": entry.get(high, 1_000_000)}})
    rules += [{"allowed_pattern": entry["AllowedPattern"]}] if "AllowedPattern" in entry else []
    return {"type": kinds.get(entry["Type"], "string"), "constraints": rules}


# -- choosing ----------------------------------------------------------------------------------------------------------


def _value(name: str, entry: Mapping[str, Any], use: Use, files: Mapping[str, str], depth: int) -> Any:
    rules = {
        key: rule for each in entry.get("constraints") or () for key, rule in each.items() if isinstance(each, dict)
    }
    if rules.get("allowed_values"):
        first = rules["allowed_values"][0]
        return [first] if entry.get("type") == "comma_delimited_list" else first
    candidates = [*_nested(use, files, depth), *_candidates(name, use)]
    match entry.get("type"):
        case "number":
            low, high = ((rules.get("range") or {}).get(end) for end in ("min", "max"))
            numbers = [int(each) for each in candidates if str(each).isdigit()] + [1]
            fitting = [each for each in numbers if (low is None or each >= low) and (high is None or each <= high)]
            return 0 if use.index else next(iter(fitting), low)
        case "boolean":
            return True
        case "json":
            return _tree(use, candidates)
        case "comma_delimited_list":
            items = 1 + max((path[0] for path in use.paths if path and isinstance(path[0], int)), default=0)
            one = next((each for each in candidates if isinstance(each, str)), "made-up")
            return [one] * items
    return next((each for each in candidates if _agrees(each, rules)), _sized(rules))


def _candidates(name: str, use: Use) -> Iterator[Any]:
    for each in use.properties:
        yield from _fitting(each)
    yield from (value for word, value in BY_NAME if word in name.lower().split("_") or name.lower().endswith(word))
    yield f"made-up-{name}"
    yield from TEXTS


def _fitting(prop: Property) -> Iterator[Any]:
    """Values that a property accepts, judging by its schema."""
    for rule in prop.constraints:
        if "allowed_values" in rule.wire:
            yield from rule.wire["allowed_values"]
        if rule.wire.get("custom_constraint") in BY_CONSTRAINT:
            yield BY_CONSTRAINT[rule.wire["custom_constraint"]]
        if "range" in rule.wire:
            yield str(_likely(rule.wire["range"]))
    if prop.kind in (ValueType.INTEGER, ValueType.NUMBER):
        yield "1"
    if prop.kind is ValueType.BOOLEAN:
        yield "true"
    if prop.kind is ValueType.LIST:
        yield (
            []
            if prop.items is None
            else [next(_fitting(prop.items), {} if prop.items.kind is ValueType.MAP else "made-up")]
        )
    if prop.kind is ValueType.MAP:
        yield {}


def _likely(bounds: Mapping[str, Any]) -> Any:
    """A number within bounds; 0 only where there is no larger one: it is seldom a port, a size or a count."""
    low, high = bounds.get("min", 1), bounds.get("max", 1)
    return low if low > 0 or high < 1 else 1


def _nested(use: Use, files: Mapping[str, str], depth: int) -> Iterator[Any]:
    """What the templates that get it as a parameter of theirs would need."""
    if depth > 4:
        return
    for path, parameter in use.nested:
        template = _parsed(files.get(path, ""))
        entry = ((template.get("parameters") or {}) if isinstance(template, dict) else {}).get(parameter)
        if isinstance(entry, dict):
            yield _value(parameter, entry, _uses(template).get(parameter, Use()), files, depth + 1)


def _agrees(value: Any, rules: Mapping[str, Any]) -> bool:
    """Does a text agree with the constraints? Those that cannot be read are left to the check of the template."""
    size, pattern = rules.get("length"), rules.get("allowed_pattern")
    if not isinstance(value, str):
        return False
    if isinstance(size, dict) and not int(size.get("min", 0)) <= len(value) <= int(size.get("max", len(value))):
        return False
    try:
        return pattern is None or re.fullmatch(pattern, value) is not None
    except re.error:
        return True


def _sized(rules: Mapping[str, Any]) -> str:
    return "Aa1" * 100 if "length" not in rules else ("Aa1" * 100)[: int(rules["length"].get("min") or 1)]


def _tree(use: Use, candidates: list[Any]) -> Any:
    """A value of any shape in which every path leads somewhere."""
    shaped = next((each for each in candidates if isinstance(each, list | dict)), None)
    paths = [path for path in use.paths if path]
    if not paths:
        return shaped if shaped is not None else ["made-up"] if use.iterated else {}
    if all(isinstance(path[0], int) for path in paths):
        return [_tree_at(use, place) for place in range(1 + max(path[0] for path in paths))]
    return {str(key): _tree_at(use, key) for key in dict.fromkeys(path[0] for path in paths)}


def _tree_at(use: Use, key: Any) -> Any:
    deeper = [path[1:] for path in use.paths if path[:1] == (key,) and len(path) > 1]
    leaves = [(path[1:], prop) for path, prop in use.leaves if path[:1] == (key,)]
    if deeper:
        return _tree(Use(paths=deeper, leaves=leaves), [])
    fitting = Use(properties=[prop for path, prop in leaves if not path])
    value = next(_candidates(str(key), fitting)) if fitting.properties or isinstance(key, str) else "made-up"
    numeric = any(each.kind in (ValueType.INTEGER, ValueType.NUMBER) for each in fitting.properties)
    return int(value) if numeric and str(value).isdigit() else value


# -- looking at uses ---------------------------------------------------------------------------------------------------


def _uses(template: Document) -> dict[str, Use]:
    found: dict[str, Use] = {}
    for section in ("resources", "Resources", "outputs", "Outputs"):
        _walk(template.get(section), None, found)
    return found


def _walk(part: Any, prop: Property | None, found: dict[str, Use]) -> None:
    """prop — the property that this part is the value of, where it is known."""
    if isinstance(part, list):
        for each in part:
            _walk(each, prop.items if prop is not None else None, found)
    if not isinstance(part, dict):
        return
    used = _used(part)
    if used is not None:
        for name, _path in _steps(part):
            found.setdefault(name, Use()).index = True
        name, path = used
        use = found.setdefault(name, Use())
        use.paths.append(path)
        if prop is not None:
            use.properties.append(prop)
            use.leaves.append((path, prop))
        return
    kind = part.get("type", part.get("Type"))
    for key, each in part.items():
        if key in ("properties", "Properties") and isinstance(kind, str) and isinstance(each, dict):
            _properties(kind, each, found)
        elif key == "for_each" and isinstance(each, dict):
            for item in each.values():
                _walk(item, None, found)
                used_there = _used(item) if isinstance(item, dict) else None
                if used_there is not None:
                    found[used_there[0]].iterated = True
        else:
            _walk(each, prop.fields.get(key) if prop is not None and prop.fields else None, found)


def _properties(kind: str, given: Document, found: dict[str, Use]) -> None:
    known: ResourceType | None = types().get(kind)
    for name, each in given.items():
        used = _used(each) if isinstance(each, dict) else None
        if used is not None and kind.endswith((".yaml", ".template")):
            found.setdefault(used[0], Use()).nested.append((kind, name))
        _walk(each, known.properties.get(name) if known is not None else None, found)


def _used(part: Document) -> tuple[str, tuple[Any, ...]] | None:
    """The parameter that a function gives, and the path into it."""
    if len(part) != 1:
        return None
    ((function, argument),) = part.items()
    if function not in ("get_param", "Ref"):
        return None
    if isinstance(argument, list) and argument and isinstance(argument[0], str):
        return argument[0], tuple(each if isinstance(each, int) else _index(each) for each in argument[1:])
    return (argument, ()) if isinstance(argument, str) else None


def _steps(part: Document) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Parameters that say which item of another parameter is meant."""
    (argument,) = part.values()
    for each in argument[1:] if isinstance(argument, list) else ():
        if isinstance(each, dict) and (used := _used(each)) is not None:
            yield used


def _index(part: Any) -> Any:
    return int(part) if isinstance(part, str) and part.isdigit() else part if isinstance(part, str) else 0


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        try:
            return parse_template(text)
        except Rejected:
            return None
