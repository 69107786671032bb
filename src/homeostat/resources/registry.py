"""All resource types by name: the built-in families, types of installed packages, and types added by a program.

Third parties register a list of `ResourceType` subclasses under the entry point group `homeostat.resources`. A name
belongs to its first owner: built-in types, then packages in the order of their names, then types added by `add`.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.errors import Rejected
from homeostat.resources.base import ResourceType
from homeostat.resources.discovery import BUILT_IN, Offer, PluginProblem, TypeRegister, loaded, registered
from homeostat.resources.families import FAMILIES
from homeostat.resources.families.balanced import BalancedServer
from homeostat.resources.families.node_groups import INTERNAL as OF_CLUSTERS
from homeostat.resources.missing import LostType
from homeostat.resources.nested import NestedStack, TemplateResource
from homeostat.resources.support import Support, SupportStatus
from homeostat.templates import patterns
from homeostat.templates.registry import is_template

GROUP = "homeostat.resources"
_INTERNAL: tuple[type[ResourceType], ...] = (BalancedServer, *OF_CLUSTERS)
INTERNAL: Mapping[str, ResourceType] = {type_class.name: type_class() for type_class in _INTERNAL}
"""Types of resources that the service itself creates; no template may name them."""
_added: list[Offer] = []
_problems: list[PluginProblem] = []


@cache
def register() -> TypeRegister:
    """Return the register of every type; loaded once, until `add` or `take_away` changes it."""
    packages = loaded(GROUP)
    built_in = [Offer(BUILT_IN, family.TYPES) for family in FAMILIES]
    offers = [Offer(origin, types) for origin, types in packages.things]
    return registered([*built_in, *offers, *_added], [*packages.problems, *_problems])


def add(offers: Iterable[Offer], problems: Iterable[PluginProblem] = ()) -> None:
    """Add types for the rest of this process; call it before any type is looked up."""
    _added.extend(offers)
    _problems.extend(problems)
    _forget()


def take_away(origins: Iterable[str]) -> None:
    """Undo `add` for these origins."""
    removed = set(origins)
    _added[:] = [offer for offer in _added if offer.origin not in removed]
    _problems[:] = [problem for problem in _problems if problem.origin not in removed]
    _forget()


def _forget() -> None:
    register.cache_clear()
    _find.cache_clear()
    outside_types.cache_clear()


def types() -> Mapping[str, ResourceType]:
    """Return type name -> the only instance of its class."""
    return register().types


def all_types() -> Mapping[str, ResourceType]:
    """Return all types, including internal ones that no template may name."""
    return {**INTERNAL, **types()}


def resource_type(name: str) -> ResourceType:
    """Return the type of this name, or the template of this name as a type.

    Raises:
        Rejected: EntityNotFound.
    """
    entry = _find(name)
    if entry is None:
        raise _not_found(name)
    return entry


def named_type(name: str) -> ResourceType:
    """Return the type that a template names, which is none of `INTERNAL`. Raise Rejected: EntityNotFound."""
    if name in INTERNAL:
        raise _not_found(name)
    return resource_type(name)


def _not_found(name: str) -> Rejected:
    return Rejected("EntityNotFound", f"The Resource Type ({name}) could not be found.")


def type_of(name: str) -> ResourceType:
    """Return the type of an existing resource; a stand-in (`LostType`) if the type is unknown by now."""
    return _find(name) or _lost(name)


@lru_cache(maxsize=1024)
def _lost(name: str) -> LostType:
    return LostType(name)


def is_known(name: str) -> bool:
    """Return whether a type of that name exists."""
    return _find(name) is not None


def kind_of(name: str) -> str:
    """Return the kind of a type; "" for an unknown type, so that no cloud is called."""
    entry = _find(name)
    return entry.kind if entry is not None else ""


def is_renamed(one: str, other: str) -> bool:
    """Return whether these are two names of the same type."""
    first, second = (_find(name) for name in (one, other))
    if first is None or second is None:
        return False
    return (first.renamed_to or one) == (second.renamed_to or other)


def is_outside(name: str) -> bool:
    """Return whether resources of this type exist in a cloud, where observers see them."""
    return kind_of(name) not in ("", NestedStack.kind)


@cache
def outside_types() -> tuple[str, ...]:
    """Return the names of all types whose resources exist in a cloud. Imports the plug-ins, as `types` does."""
    return tuple(sorted(name for name in all_types() if is_outside(name)))


def is_thing(name: str) -> bool:
    """Return whether resources of this type exist in a cloud, and not in the service's own records."""
    return is_outside(name) and kind_of(name) not in BUILTIN_KINDS


def shown_id(type_name: str, handle: str) -> str:
    """Return the physical id as users know it; the handle if the type is unknown."""
    entry = _find(type_name)
    return handle if entry is None else entry.shown_id(handle)


@lru_cache(maxsize=4096)
def _find(name: str) -> ResourceType | None:
    """Look up a type, or a template as a type; cached, since it is called many times for each resource."""
    entry = types().get(name) or INTERNAL.get(name)
    return TemplateResource(name) if entry is None and is_template(name) else entry


_MATCH_S = 0.01
"""Most seconds for matching one name."""


def listed(name_regex: str = "", status: SupportStatus | None = None, version: str = "") -> list[str]:
    """Return the sorted names of all types that are not hidden.

    Args:
        name_regex: Regular expression that must match from the start of the name; an invalid one matches nothing.
        status: Only types with this support status; None for all.
        version: Only types supported since this release; "" for all.

    Raises:
        Rejected: The expression could take too long.
    """
    try:
        wanted = patterns.compiled(name_regex)
        return sorted(
            name
            for name, entry in types().items()
            if _is_listed(entry.support, status, version) and patterns.bounded(wanted.match, name, seconds=_MATCH_S)
        )
    except patterns.TooComplicated as error:
        raise Rejected("HTTPBadRequest", str(error), path=("name",)) from error
    except ValueError:
        return []


def _is_listed(support: Support, status: SupportStatus | None, version: str) -> bool:
    return not support.hidden and status in (None, support.status) and version in ("", support.version)


def of_kind(kinds: Iterable[str]) -> dict[str, list[str]]:
    """Return each of these kinds -> the names of its types."""
    names: dict[str, list[str]] = {kind: [] for kind in kinds}
    for name, entry in all_types().items():
        if entry.kind in names:
            names[entry.kind].append(name)
    return names
