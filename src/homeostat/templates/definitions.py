"""Compilation of the sections `resources` and `outputs` into definitions and outputs of the desired graph."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.desired import Definition, Output
from homeostat.model.errors import Rejected, check_name, invalid
from homeostat.templates.alike import is_alone, renamed
from homeostat.templates.dialects import Dialect
from homeostat.templates.functions.references import reference_incorrect
from homeostat.templates.graph import Cycle, ordered
from homeostat.templates.snippets import Conditions, Reader
from homeostat.templates.tree import UNKNOWN, Function, Path, is_dynamic, requires
from homeostat.templates.weights import TooHeavy


def check_types(resources: Mapping[str, Any], dialect: Dialect) -> None:
    """Check that each resource is a map with a type.

    Raises:
        Rejected: A resource is not; the error has its path.
    """
    checked: object = None
    for name, entry in resources.items():
        if entry is checked:
            continue
        if not isinstance(entry, dict):
            raise _no_map("resources", name, entry, dialect)
        if "type" not in entry:
            raise invalid(_lacks("resources", "type", dialect), "resources", name)
        kind = entry["type"]
        if kind is None:
            raise invalid(f'Resource "{name}" has no type', "resources", name)
        if not isinstance(kind, str):
            raise invalid(f'Resource "{name}" type is not a string', "resources", name)
        if not kind:
            raise invalid(f'Non-empty resource type is required for resource "{name}"', "resources", name)
        checked = entry


def _no_map(section: str, name: str, entry: Any, dialect: Dialect) -> Rejected:
    word, kind = dialect.word(section), type(entry).__name__
    return invalid(f'"{word}" must contain a map of {word[:-1]} maps. Found a [{kind}] instead', section, name)


def _lacks(section: str, key: str, dialect: Dialect) -> str:
    return f"Each {dialect.word(section)[:-1]} must contain a {dialect.word(section, key)} key."


def check_resources(resources: Mapping[str, Mapping[str, Any]], dialect: Dialect) -> None:
    """Check the names and the keys of resources.

    Raises:
        Rejected: A name has a character that is not allowed, or a key is unknown.
    """
    checked: object = None
    for name, entry in resources.items():
        if "/" in name:
            raise invalid(f'Resource name may not contain "/": {name}', "resources", name)
        check_name(name, ("resources", name))
        if entry is checked:
            continue
        unknown = sorted(key for key in entry if not dialect.has("resources", key))
        if unknown:
            raise invalid(f"Invalid keyword(s) inside a resource definition: {', '.join(unknown)}", "resources", name)
        checked = entry


def enabled(entry: Mapping[str, Any], conditions: Conditions, path: Path, dialect: Dialect) -> bool:
    """Return whether the condition of a resource or output holds; True without a condition."""
    condition = entry.get("condition")
    return condition is None or bool(conditions.holds(condition, dialect.place(*path, "condition")))


def compile_definitions(
    resources: Mapping[str, Mapping[str, Any]], reader: Reader, dialect: Dialect
) -> dict[str, Definition]:
    """Compile resources; of alike resources without requirements only the first is read.

    An alike resource spends the weight of the computed values, too: a running stack has a copy for each resource.

    Raises:
        Rejected: A section of a resource is wrong, or the functions compute too much; the error has its path.
    """
    allowance = reader.context.allowance
    alone: dict[int, tuple[Definition, int]] = {}
    definitions = {}
    for name, entry in resources.items():
        if id(entry) in alone:
            alike, spent = alone[id(entry)]
            try:
                allowance.spend(spent)
            except TooHeavy as error:
                raise invalid(str(error), "resources", name) from error
            definitions[name] = renamed(alike, name)
            continue
        before = allowance.left
        definitions[name] = compile_definition(name, entry, reader, dialect)
        if is_alone(entry, definitions[name]):
            alone[id(entry)] = definitions[name], before - allowance.left
    return definitions


def compile_definition(name: str, entry: Mapping[str, Any], reader: Reader, dialect: Dialect) -> Definition:
    """Compile one resource of the graph.

    Raises:
        Rejected: A section of the resource is wrong; the error has its path.
    """
    path: Path = ("resources", name)

    def tree(key: str) -> Any:
        snippet = entry.get(key)
        return None if snippet is None else reader.tree(snippet, dialect.place(*path, key))

    try:
        properties = _map(tree("properties"), (*path, "properties"))
    except Rejected as error:
        raise _of_property(error) from error
    metadata = tree("metadata")
    if metadata is not None and not isinstance(metadata, Function):
        metadata = _map(metadata, (*path, "metadata"))
    depends_on = entry.get("depends_on")
    explicit = set() if depends_on is None else _depends_on(depends_on, reader, dialect.place(*path, "depends_on"))
    external_id = tree("external_id")
    deletion_policy = _deletion_policy(tree("deletion_policy"), dialect, path)
    if external_id is None:
        needed = {*explicit, *requires(properties), *requires(metadata)}
    elif entry.get("depends_on"):
        raise invalid(f'Resource "{name}" has an external_id, so it cannot have depends_on', *path, "depends_on")
    else:
        # A resource with an external id is managed elsewhere, neither built nor removed here: only its id is needed.
        needed, deletion_policy = set(requires(external_id)), "Retain"
    return Definition(
        name=name,
        type=entry["type"],
        properties=properties,
        metadata=metadata,
        requires=tuple(sorted(needed)),
        deletion_policy=deletion_policy,
        update_policy=_map(tree("update_policy"), (*path, "update_policy")),
        creation_policy=_map(tree("creation_policy"), (*path, "creation_policy")),
        description=_text(entry.get("description")),
        external_id=external_id,
        static=not is_dynamic(properties),
    )


def _of_property(error: Rejected) -> Rejected:
    """Return the error of a property: an undeclared parameter is reported as an error of the property."""
    if error.fault != "UserParameterMissing":
        return error
    return invalid(error.message, *error.path[:-1], error="Property error")


def _map(tree: Any, path: Path) -> dict[str, Any]:
    if tree is None or tree is UNKNOWN:
        return {}
    if isinstance(tree, dict):
        return tree
    if isinstance(tree, Function):
        raise invalid(
            f"A map is needed before any resource exists; use {tree.name} for values within the map, not for all of it",
            *path,
        )
    raise invalid(f"A map is needed, found a {type(tree).__name__}", *path)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _depends_on(value: Any, reader: Reader, path: Path) -> set[str]:
    """Return the names in `depends_on` whose condition holds; functions are not supported. `path` is its path.

    Raises:
        Rejected: Not a text or a list of texts, or a name that the template does not have.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise invalid("depends_on must be a string or a list of strings", *path)
    resources = reader.context.resources
    for resource in names:
        if resource not in resources:
            raise reference_incorrect(resource, path)
    return {resource for resource in names if resources[resource]}


def _deletion_policy(value: Any, dialect: Dialect, path: Path) -> str:
    if value is None or value is UNKNOWN:
        return "Delete"
    if not isinstance(value, str) or value not in dialect.policies:
        text = f"{{{value.name}: …}}" if isinstance(value, Function) else value
        raise invalid(f'Invalid deletion policy "{text}"', *path, "deletion_policy")
    return dialect.policies[value]


def graph_order(definitions: Mapping[str, Definition]) -> tuple[str, ...]:
    """Return the names of all resources in the order of their requirements.

    Raises:
        Rejected: CircularDependencyException.
    """
    try:
        return ordered({name: definition.requires for name, definition in definitions.items()})
    except Cycle as cycle:
        raise Rejected("CircularDependencyException", f"Circular Dependency Found: {cycle}") from cycle


def compile_output(name: str, entry: Any, reader: Reader, conditions: Conditions, dialect: Dialect) -> Output:
    """Compile one output; its value is not read if its condition does not hold.

    Raises:
        Rejected: The output is wrong; the error has its path.
    """
    path: Path = ("outputs", name)
    if not isinstance(entry, dict):
        raise _no_map("outputs", name, entry, dialect)
    unknown = sorted(entry.keys() - set(dialect.output.values()))
    if unknown:
        raise invalid(f"Invalid keyword(s) inside an output definition: {', '.join(unknown)}", *path)
    if "value" not in entry:
        raise invalid(_lacks("outputs", "value", dialect), *path)
    active = enabled(entry, conditions, path, dialect)
    value = reader.tree(entry["value"], dialect.place(*path, "value")) if active else None
    return Output(name, value, _text(entry.get("description")) or "No description given", active)
