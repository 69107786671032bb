"""All resource types by name: the built-in families, those of installed packages, and those that a program adds.

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
INTERNAL: Mapping[str, ResourceType] = {each.name: each() for each in _INTERNAL}
"""Types of resources that the service makes of its own; no template may name them."""
_added: list[Offer] = []
_problems: list[PluginProblem] = []


@cache
def register() -> TypeRegister:
    """Return the register of every type; loaded once, until `add` or `take_away` changes it."""
    packages = loaded(GROUP)
    built_in = [Offer(BUILT_IN, family.TYPES) for family in FAMILIES]
    offers = [Offer(origin, each) for origin, each in packages.things]
    return registered([*built_in, *offers, *_added], [*packages.problems, *_problems])


def add(offers: Iterable[Offer], problems: Iterable[PluginProblem] = ()) -> None:
    """Add types for the rest of this process; call it before any type is looked up."""
    _added.extend(offers)
    _problems.extend(problems)
    _forget()


def take_away(origins: Iterable[str]) -> None:
    """Undo `add` for these origins."""
    gone = set(origins)
    _added[:] = [each for each in _added if each.origin not in gone]
    _problems[:] = [each for each in _problems if each.origin not in gone]
    _forget()


def _forget() -> None:
    register.cache_clear()
    _find.cache_clear()
    outside_types.cache_clear()


def types() -> Mapping[str, ResourceType]:
    """Return type name -> the one instance of its class."""
    return register().types


def all_types() -> Mapping[str, ResourceType]:
    """Return the same with the types that no template may name."""
    return {**INTERNAL, **types()}


def resource_type(name: str) -> ResourceType:
    """Return the type of that name, or the template of that name as a type.

    Raises:
        Rejected: EntityNotFound.
    """
    each = _find(name)
    if each is None:
        raise _not_found(name)
    return each


def named_type(name: str) -> ResourceType:
    """Return the type that a template names: not one of `INTERNAL`. Raise Rejected: EntityNotFound."""
    if name in INTERNAL:
        raise _not_found(name)
    return resource_type(name)


def _not_found(name: str) -> Rejected:
    return Rejected("EntityNotFound", f"The Resource Type ({name}) could not be found.")


def type_of(name: str) -> ResourceType:
    """Return the type of an existing resource; a stand-in (`LostType`) if the type is not known any more."""
    return _find(name) or _lost(name)


@lru_cache(maxsize=1024)
def _lost(name: str) -> LostType:
    return LostType(name)


def is_known(name: str) -> bool:
    """Return whether a type of that name exists."""
    return _find(name) is not None


def kind_of(name: str) -> str:
    """Return the kind of a type; "" for a type that is not known (any more), so that no cloud is called for it."""
    each = _find(name)
    return each.kind if each is not None else ""


def is_renamed(one: str, other: str) -> bool:
    """Return whether these are two names of the same type."""
    first, second = (_find(name) for name in (one, other))
    if first is None or second is None:
        return False
    return (first.renamed_to or one) == (second.renamed_to or other)


def is_outside(name: str) -> bool:
    """Return whether things of this type are in a cloud, where observers see them."""
    return kind_of(name) not in ("", NestedStack.kind)


@cache
def outside_types() -> tuple[str, ...]:
    """Return the names of these types. It imports plug-ins, as all that asks for every type does."""
    return tuple(sorted(name for name in all_types() if is_outside(name)))


def is_thing(name: str) -> bool:
    """Return whether things of this type are in a cloud, and not in the service's own records."""
    return is_outside(name) and kind_of(name) not in BUILTIN_KINDS


def shown_id(type_name: str, handle: str) -> str:
    """Return the physical id of a thing as users know it; the handle where the type is not known."""
    kind = _find(type_name)
    return handle if kind is None else kind.shown_id(handle)


@lru_cache(maxsize=4096)
def _find(name: str) -> ResourceType | None:
    """Look up a type, or a template as a type; cached, since it is called many times for each resource."""
    each = types().get(name) or INTERNAL.get(name)
    return TemplateResource(name) if each is None and is_template(name) else each


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
            for name, each in types().items()
            if _is_listed(each.support, status, version) and patterns.bounded(wanted.match, name, seconds=_MATCH_S)
        )
    except patterns.TooComplicated as error:
        raise Rejected("HTTPBadRequest", str(error), path=("name",)) from error
    except ValueError:
        return []


def _is_listed(support: Support, status: SupportStatus | None, version: str) -> bool:
    return not support.hidden and status in (None, support.status) and version in ("", support.version)


def of_kind(kinds: Iterable[str]) -> dict[str, list[str]]:
    """Return each of these kinds -> names of the types whose things are of that kind."""
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    for name, each in all_types().items():
        if each.kind in found:
            found[each.kind].append(name)
    return found
