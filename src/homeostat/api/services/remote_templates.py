"""Templates that a stack names by URL are fetched when it is asked for, and kept among its files: later nobody asks the
network again, and what was fetched cannot change behind a stack's back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from homeostat.desired.graphs import registry_of, template_of
from homeostat.model.errors import Rejected
from homeostat.store.stacks.stacks import Desired
from homeostat.templates import declared_in
from homeostat.templates.environments import nested_environment
from homeostat.templates.registry import is_template

TEMPLATES_MAX = 100
"""Templates fetched for one request."""
PLACES_MAX = 10_000
"""Nested templates, each counted once for what the registry says inside of it, that are searched for such names."""
SCHEMES = ("http://", "https://")


def with_fetched(desired: Desired, fetch: Callable[[str], str]) -> Desired:
    """The revision with the text of every template that it names by URL, and those named in these.

    Fails: Rejected, as `fetch` does; for what is wrong with a template.
    """
    files = dict(desired.files)
    seen: set[tuple[str, str]] = set()
    todo = [(desired.template, desired.environment)]
    fetched = 0
    while todo:
        template, environment = todo.pop()
        for name, inside in _named(template, environment):
            place = (name, repr(inside))
            if place in seen:
                continue
            if len(seen) >= PLACES_MAX:
                message = f"the template names others in more than {PLACES_MAX} ways: make several stacks of it"
                raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
            seen.add(place)
            if name not in files and name.startswith(SCHEMES) and fetched < TEMPLATES_MAX:
                files[name] = fetch(name)
                fetched += 1
            if name in files:
                todo += [(each, inside) for each in _read(name, files)]
    return replace(desired, files=files) if fetched else desired


def _read(name: str, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The template of that name; none where it cannot be read: the check refuses it, naming the resource, too."""
    try:
        return [template_of(name, files)]
    except Rejected:
        return []


def _named(template: Mapping[str, Any], environment: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of the templates that resources are made from, each with the environment that its stack has."""
    registry = registry_of(environment)
    for name, entry in declared_in(template, "resources").items():
        if not isinstance(entry, Mapping):
            continue
        called, properties = _text(entry, "type"), _map(entry, "properties")
        sources = [registry.resolve(called, name).type, properties.get("TemplateURL")]
        made_of = [each for each in sources if isinstance(each, str) and (is_template(each) or each is sources[1])]
        members = _members(properties)
        if not made_of and not members:
            continue
        inside = nested_environment(environment, registry, name, called)
        yield from ((each, inside) for each in made_of)
        within = registry_of(inside)
        for number, member in enumerate(members):
            made_by = within.resolve(member, str(number)).type
            if is_template(made_by):
                yield made_by, nested_environment(inside, within, str(number), member)


def _members(properties: Mapping[str, Any]) -> list[str]:
    """Types of the members of a group or chain."""
    one, types = properties.get("resource_def", properties.get("resource")), properties.get("resources")
    named = [one.get("type")] if isinstance(one, Mapping) else types if isinstance(types, list) else []
    return [each for each in named if isinstance(each, str)]


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, entry.get(key.capitalize()))
    return value if isinstance(value, str) else ""


def _map(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key, entry.get(key.capitalize()))
    return value if isinstance(value, Mapping) else {}
