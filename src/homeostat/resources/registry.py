"""All resource types by name: the built-in families, those of installed packages, and those that a program adds.

Third parties register a list of `ResourceType` subclasses under the entry point group `homeostat.resources`. A name
belongs to the first who has it: built-in types, then packages in the order of their names, then what is added.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from homeostat.model.errors import Rejected
from homeostat.resources.base import ResourceType
from homeostat.resources.discovery import BUILT_IN, Offer, PluginProblem, TypeRegister, loaded, registered
from homeostat.resources.families import FAMILIES
from homeostat.resources.missing import LostType
from homeostat.resources.nested import NestedStack, TemplateResource
from homeostat.resources.support import Support, SupportStatus
from homeostat.templates import patterns
from homeostat.templates.registry import is_template

GROUP = "homeostat.resources"
_added: list[Offer] = []
_problems: list[PluginProblem] = []


@cache
def register() -> TypeRegister:
    """Every type, where it comes from, and what could not be had."""
    packages = loaded(GROUP)
    built_in = [Offer(BUILT_IN, family.TYPES) for family in FAMILIES]
    offers = [Offer(origin, each) for origin, each in packages.things]
    return registered([*built_in, *offers, *_added], [*packages.problems, *_problems])


def add(offers: Iterable[Offer], problems: Iterable[PluginProblem] = ()) -> None:
    """More types, for the rest of this process: to be called before anything asks for types."""
    _added.extend(offers)
    _problems.extend(problems)
    _forget()


def take_away(origins: Iterable[str]) -> None:
    """Undo `add` for these places."""
    gone = set(origins)
    _added[:] = [each for each in _added if each.origin not in gone]
    _problems[:] = [each for each in _problems if each.origin not in gone]
    _forget()


def _forget() -> None:
    register.cache_clear()
    _find.cache_clear()


def types() -> Mapping[str, ResourceType]:
    """Type name -> the one instance of its class."""
    return register().types


def resource_type(name: str) -> ResourceType:
    """The type of that name, or the template of that name as a type. Fails: Rejected (EntityNotFound)."""
    each = _find(name)
    if each is None:
        raise Rejected("EntityNotFound", f"The Resource Type ({name}) could not be found.")
    return each


def type_of(name: str) -> ResourceType:
    """The type of something that there is: a stand-in for one that is not known any more, of which nobody can tell
    anything."""
    return _find(name) or _lost(name)


@lru_cache(maxsize=1024)
def _lost(name: str) -> LostType:
    return LostType(name)


def is_known(name: str) -> bool:
    """Is there a type of that name?"""
    return _find(name) is not None


def kind_of(name: str) -> str:
    """Kind of the cloud port of a type; "" for one that is not known (any more), which no cloud can hear of."""
    each = _find(name)
    return each.kind if each is not None else ""


def is_renamed(one: str, other: str) -> bool:
    """Are these two names of the same type?"""
    first, second = (_find(name) for name in (one, other))
    if first is None or second is None:
        return False
    return (first.renamed_to or one) == (second.renamed_to or other)


def is_outside(name: str) -> bool:
    """Do things of this type live in a cloud, where observers look at them?"""
    return kind_of(name) not in ("", NestedStack.kind)


def shown_id(type_name: str, handle: str) -> str:
    """The physical id of a thing as users know it; of a type that there is not, its handle."""
    kind = _find(type_name)
    return handle if kind is None else kind.shown_id(handle)


@lru_cache(maxsize=4096)
def _find(name: str) -> ResourceType | None:
    """Asked many times for each resource."""
    each = types().get(name)
    return TemplateResource(name) if each is None and is_template(name) else each


_MATCH_S = 0.01
"""Time for one name."""


def listed(name_regex: str = "", status: SupportStatus | None = None, version: str = "") -> list[str]:
    """Names of all types that are not hidden, sorted; with a regular expression, those that match it from their start.

    status, version — only those with this support status, or one since that release.

    Fails: Rejected for an expression that could take too long.
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
    """Kind of the cloud port -> names of the types that are things of that kind."""
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    for name, each in types().items():
        if each.kind in found:
            found[each.kind].append(name)
    return found
