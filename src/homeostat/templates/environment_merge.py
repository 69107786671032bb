"""Merging of several environment files into one environment, as in Heat. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.parameters import TYPES
from homeostat.templates.parser import parse_environment, parse_template

MERGED = ("parameters", "parameter_defaults")
"""Sections whose values are merged by the strategies of the file; in all further sections the later file wins."""
STRATEGIES = ("overwrite", "merge", "deep_merge")
DEFAULT = "default"
"""Key of `parameter_merge_strategies` for all parameters of the file without an entry."""
LIST_TYPES = {"CommaDelimitedList": "comma_delimited_list", "Json": "json", "String": "string", "Number": "number"}
"""CFN type -> HOT type."""


def merged_environment(
    names: Iterable[str], files: Mapping[str, str], parameters: Mapping[str, Any], template: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Merge environment files in their order.

    Args:
        names: Names of the environments.
        files: Texts by name; each may also be a template that declares parameters.
        parameters: Values given by the caller besides the files; they count as the first file.
        template: The parsed root template. Together with the templates among the files it declares the existing
            parameters and their types. None if the request keeps the former template: then values of every name are
            kept, and only parameters declared by templates among the files can be merged.

    Raises:
        Rejected: A file is missing or wrong, or a value cannot be merged; the message names the file or the parameter.
    """
    types: dict[str, str] | None = None
    merged: dict[str, Any] = {"parameters": dict(parameters)} if parameters else {}
    chosen: dict[str, tuple[str, str]] = {}
    for name in names:
        if name not in files:
            raise Rejected("HTTPBadRequest", f"environment_files: {name} is not among the files")
        environment = parse_environment(files[name])
        strategies = _strategies(name, environment.get("parameter_merge_strategies", {}), chosen)
        for section, content in environment.items():
            before = merged.get(section)
            if section == "parameter_merge_strategies":
                continue
            # The templates are parsed only if there is anything to merge.
            if section in MERGED and before:
                types = _declared(files, template or {}) if types is None else types
                known = content if template is None else {key: content[key] for key in content if key in types}
                merged[section] = _merged_values(before, known, types, strategies)
            elif isinstance(content, dict):
                entries = {key: value for key, value in content.items() if value is not None or section not in MERGED}
                merged[section] = {**(before or {}), **entries}
            else:
                merged[section] = [*(before or []), *content]
    return merged


Strategy = Callable[[str], str]
"""Name of a parameter -> its merge strategy."""


def _strategies(file: str, entries: Mapping[str, Any], chosen: dict[str, tuple[str, str]]) -> Strategy:
    """Check the strategies of one file, and return the lookup of a parameter's strategy.

    Args:
        entries: Section `parameter_merge_strategies`.
        chosen: Parameter -> its strategy and the first file with this strategy, from earlier files. Completed here.

    Raises:
        Rejected: A strategy is unknown, or contradicts an earlier file.
    """
    for parameter, strategy in entries.items():
        path = ("environment_files", file, "parameter_merge_strategies", parameter)
        if strategy not in STRATEGIES:
            raise Rejected("HTTPBadRequest", f"one of {', '.join(STRATEGIES)} is needed, not {strategy!r}", path=path)
        if parameter == DEFAULT:
            continue
        first, where = chosen.setdefault(parameter, (strategy, file))
        if first != strategy:
            message = (
                f"Conflicting merge strategy '{strategy}' for parameter '{parameter}' in file '{file}': "
                f"it is '{first}' in '{where}'."
            )
            raise Rejected("ConflictingMergeStrategyForParam", message)
    default = entries.get(DEFAULT, "overwrite")
    return lambda parameter: chosen[parameter][0] if parameter in chosen else default


def _merged_values(
    before: Mapping[str, Any], after: Mapping[str, Any], types: Mapping[str, str], strategies: Strategy
) -> dict[str, Any]:
    values = dict(before)
    for name, value in after.items():
        if value is None:
            continue
        strategy = strategies(name)
        fresh = strategy == "overwrite" or values.get(name) is None
        kind = types.get(name, "parameter of an unknown type")
        values[name] = value if fresh else _combined(name, kind, values[name], value, strategy)
    return values


def _combined(name: str, kind: str, before: Any, after: Any, strategy: str) -> Any:
    try:
        if kind == "json":
            left, right = TYPES[kind].convert(before), TYPES[kind].convert(after)
            return _deep(left, right) if strategy == "deep_merge" else _together(left, right)
        if kind == "comma_delimited_list":
            left, right = TYPES[kind].convert(before), TYPES[kind].convert(after)
            return ",".join([*left, *right]) if isinstance(before, str) else [*left, *right]
        if kind == "string":
            return TYPES[kind].convert(before) + TYPES[kind].convert(after)
        if kind == "number":
            return TYPES[kind].convert(before) + TYPES[kind].convert(after)
    except (TypeError, ValueError) as error:
        raise Rejected("HTTPBadRequest", f"it cannot be merged: {error}", path=("parameters", name)) from error
    message = f"Invalid merge strategy '{strategy}' for parameter '{name}', which is a {kind}."
    raise Rejected("InvalidMergeStrategyForParam", message)


def _together(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **after}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *after]
    raise ValueError(f"a {type(before).__name__} and a {type(after).__name__} do not fit together")


def _deep(before: Any, after: Any) -> Any:
    """Merge two values deeply: maps key by key, lists and texts concatenated; otherwise the later value wins."""
    if isinstance(before, dict) and isinstance(after, dict):
        both = {key: _deep(before[key], after[key]) for key in before if key in after}
        return {**before, **after, **both}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *after]
    return before + after if isinstance(before, str) and isinstance(after, str) else after


def _declared(files: Mapping[str, str], template: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> type of the parameters of all templates among the files; types of the root template win."""
    types: dict[str, str] = {}
    for text in files.values():
        types |= parameter_types(_template_in(text))
    return types | parameter_types(template)


def _template_in(text: str) -> Mapping[str, Any]:
    """Parse a file as a template; {} if it is not one."""
    try:
        return parse_template(text)
    except Rejected:
        return {}


def parameter_types(template: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> type of the parameters that a template declares, with the types of HOT."""
    section = template.get("parameters", template.get("Parameters"))
    entries = section if isinstance(section, Mapping) else {}
    kinds = {
        name: entry.get("type", entry.get("Type")) for name, entry in entries.items() if isinstance(entry, Mapping)
    }
    return {name: LIST_TYPES.get(kind, kind) for name, kind in kinds.items() if isinstance(kind, str)}
