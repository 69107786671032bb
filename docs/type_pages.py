"""The reference of resource types: an index of all, one for each service, and a page for each type."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from docs import examples
from homeostat.clouds.heat_api import RemoteStacks
from homeostat.clouds.local import LocalCloud
from homeostat.clouds.openstack.registry import COLLECTIONS
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.resources import custom_constraints
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import types
from homeostat.resources.schema import Property, ValueType
from homeostat.resources.support import SupportStatus

FOLDER = "resource-types"
TITLES: Mapping[str, str] = {
    "aodh": "Alarms (Aodh)",
    "aws": "In the words of AWS",
    "barbican": "Keys and secrets (Barbican)",
    "blazar": "Reservations (Blazar)",
    "cinder": "Block storage (Cinder)",
    "designate": "DNS (Designate)",
    "glance": "Images (Glance)",
    "heat": "Orchestration (Heat)",
    "ironic": "Bare metal (Ironic)",
    "keystone": "Identity (Keystone)",
    "magnum": "Container clusters (Magnum)",
    "manila": "Shared file systems (Manila)",
    "mistral": "Workflows (Mistral)",
    "neutron": "Networking (Neutron)",
    "nova": "Compute (Nova)",
    "octavia": "Load balancing (Octavia)",
    "senlin": "Clusters (Senlin)",
    "swift": "Object storage (Swift)",
    "trove": "Databases (Trove)",
    "zaqar": "Messaging (Zaqar)",
    "zun": "Containers (Zun)",
}
INTRODUCTION = """\
A page for each type. One that is not listed is refused when a template is validated, and so is one that no cloud of the
project has. The page of a type says

- what it is, how far it is supported, on which clouds it is, and what `get_resource` gives;
- the least that a template has to say to have one, as an example;
- its properties. *Update* is `in place`, or `replace` where a change makes a new thing and then removes the old one, or
  `never` where a change is refused. `a.b` is the key `b` of the map `a`, `a[].b` that of each item of the list `a`;
- its attributes, for `get_attr`.
"""


def page_name(kind: ResourceType) -> str:
    """The name of a type's page. It has a hyphen, as no service's has."""
    return kind.name.lower().replace("::", "-")


def family(name: str) -> str:
    """The service of a type, which is the name of its index."""
    first, *rest = name.split("::")
    return (rest[0] if first == "OS" and rest else first).lower()


def families() -> dict[str, list[ResourceType]]:
    """Service -> its types, by name."""
    found: dict[str, list[ResourceType]] = {}
    for name in sorted(types(), key=lambda each: (family(each), each)):
        found.setdefault(family(name), []).append(types()[name])
    return found


def listed() -> dict[str, list[ResourceType]]:
    """Service -> its types that are not hidden; only services with one."""
    found = {page: [kind for kind in kinds if not kind.support.hidden] for page, kinds in families().items()}
    return {page: kinds for page, kinds in found.items() if kinds}


def pages() -> Mapping[str, Callable[[], str]]:
    """Path below the reference -> what writes the page."""
    services: dict[str, Callable[[], str]] = {f"{FOLDER}/{page}.md": partial(family_page, page) for page in listed()}
    kinds = [kind for kinds in listed().values() for kind in kinds]
    return services | {f"{FOLDER}/{page_name(kind)}.md": partial(type_page, kind) for kind in kinds}


# -- the indexes ------------------------------------------------------------------------------------------------------


def index_page() -> str:
    lines = ["# Resource types\n", INTRODUCTION]
    for page, kinds in listed().items():
        lines += [f"## [{title(page)}]({FOLDER}/{page}.md)\n", *_table(kinds, f"{FOLDER}/"), ""]
    hidden = [kind for kinds in families().values() for kind in kinds if kind.support.hidden]
    lines += ["## Retired\n", "Old templates may have them; new ones should not.\n"]
    lines += ["| type | instead |", "|---|---|"]
    lines += [row(f"`{kind.name}`", kind.support.message) for kind in hidden]
    return "\n".join([*lines, ""])


def family_page(page: str) -> str:
    lines = [f"# {title(page)}\n", f"[All resource types](../{FOLDER}.md).\n", *_table(listed()[page], "")]
    return "\n".join([*lines, ""])


def _table(kinds: Iterable[ResourceType], folder: str) -> Iterator[str]:
    yield from ("| type | what it is | on |", "|---|---|---|")
    for kind in kinds:
        mark = " *(deprecated)*" if kind.support.status is SupportStatus.DEPRECATED else ""
        yield row(f"[{kind.name}]({folder}{page_name(kind)}.md){mark}", kind.description, ", ".join(clouds(kind)))


def title(page: str) -> str:
    return TITLES.get(page, page)


@cache
def _kinds() -> Mapping[str, frozenset[str]]:
    """Cloud -> kinds of its things."""
    with TemporaryDirectory() as root:
        local = LocalCloud(Path(root))
        beside = frozenset(each.kind for each in COLLECTIONS)
        found = {"local": local.kinds, "openstack": beside, "other regions": RemoteStacks.kinds}
        local.close()
        return found


def clouds(kind: ResourceType) -> list[str]:
    """Where there are things of this type."""
    if kind.kind in ("", NestedStack.kind, *BUILTIN_KINDS):
        return ["any cloud"]
    return [*(name for name, kinds in _kinds().items() if kind.kind in kinds), "simulated"]


# -- the page of a type ------------------------------------------------------------------------------------------------


def type_page(kind: ResourceType) -> str:
    return "\n".join(_sections(kind))


def _sections(kind: ResourceType) -> Iterator[str]:
    page = family(kind.name)
    yield f"# {kind.name}\n"
    yield f"{kind.description}\n"
    yield f"[{title(page)}]({page}.md) · [All resource types](../{FOLDER}.md)\n"
    yield from _facts(kind)
    yield "## Example\n"
    yield "The least that a template has to say:\n"
    yield f"```yaml\n{yaml.safe_dump(examples.template(kind), sort_keys=False)}```\n"
    command = f"openstack orchestration resource type show --template-type hot {kind.name}"
    yield f"One with all properties: `{command}`.\n"
    rows = [row(*cells) for name, each in kind.properties.items() for cells in property_rows(name, each)]
    if rows:
        yield "## Properties\n"
        yield f"[What the columns mean](../{FOLDER}.md).\n"
        yield from ("| property | type | update | meaning |", "|---|---|---|---|", *rows, "")
    policies = [cells for name, each in kind.update_policy.items() for cells in property_rows(name, each)]
    if policies:
        rows = [row(name, kind_of_value, meaning) for name, kind_of_value, _update, meaning in policies]
        yield "## Update policy\n"
        yield from ("| in `update_policy` | type | meaning |", "|---|---|---|", *rows, "")
    if kind.open_schema:
        yield "It takes any property and has any attribute.\n"
    yield "## Attributes\n"
    if kind.open_attributes:
        yield "It has attributes besides these, as its properties say.\n"
    yield from ("| attribute | type | meaning |", "|---|---|---|")
    for name, each in sorted(kind.attributes.items()):
        mark = " *Deprecated.*" if each.deprecated else ""
        yield row(f"`{name}`", each.kind.value, each.description + mark)
    yield ""


def _facts(kind: ResourceType) -> Iterator[str]:
    support = kind.support
    if support.status is not SupportStatus.SUPPORTED:
        since = f" since release {support.version} of the Orchestration service" if support.version else ""
        yield f"- **{support.status.capitalize()}**{since}. {support.message}".rstrip()
    elif support.version:
        yield f"- Since release {support.version} of the Orchestration service."
    yield f"- On: {', '.join(clouds(kind))}."
    yield f"- `get_resource` gives {referred(kind)}."
    if kind.can_snapshot:
        yield "- Its [deletion policy](../../howto/keep-data.md) may be `Snapshot`."
    yield ""


def referred(kind: ResourceType) -> str:
    """What its reference is: the first words of the method's docstring, where a type has its own."""
    own = type(kind).reference
    if own is ResourceType.reference:
        return "its id"
    words = (own.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return words[:1].lower() + words[1:]


def property_rows(name: str, each: Property, update: str = "") -> Iterator[tuple[str, ...]]:
    """Cells of a property, and of those inside it, which change as it does. update — of what it is inside."""
    if each.hidden:
        return
    update = update or ("never" if each.immutable else "in place" if each.update else "replace")
    notes = [each.description]
    if each.required:
        notes.append("**Required.**")
    if not each.implemented:
        notes.append("**Refused**: it is not implemented.")
    if each.default is not None:
        notes.append(f"Default: `{json.dumps(each.default)}`.")
    notes += [f"{_rule(constraint.wire)}." for constraint in each.constraints]
    if each.items is not None:
        notes += [f"Each item: {_rule(constraint.wire)}." for constraint in each.items.constraints]
    yield f"`{name}`", _kind(each), update, " ".join(note for note in notes if note)
    items = each.items.fields if each.items is not None else None
    for inner, field in (each.fields or {}).items():
        yield from property_rows(f"{name}.{inner}", field, update)
    for inner, field in (items or {}).items():
        yield from property_rows(f"{name}[].{inner}", field, update)


def _kind(each: Property) -> str:
    if each.kind is not ValueType.LIST or each.items is None:
        return each.kind.value
    return f"{each.kind.value} of {each.items.kind.value}"


def _rule(wire: Mapping[str, Any]) -> str:
    """A constraint in words."""
    ((rule, value),) = wire.items()
    match rule:
        case "allowed_values":
            return "One of " + ", ".join(f"`{each}`" for each in value)
        case "range":
            return _bounds(value)
        case "length":
            return f"Length: {_bounds(value).lower()}"
        case "allowed_pattern":
            return f"Matches `{value}`"
        case "custom_constraint" if value in custom_constraints.KINDS:
            return f"It must exist (`{value}`)"
    return f"Must fit `{value}`"


def _bounds(value: Mapping[str, Any]) -> str:
    low, high = value.get("min"), value.get("max")
    if low is None or high is None:
        return f"At most {high}" if low is None else f"At least {low}"
    return f"{low} to {high}"


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
