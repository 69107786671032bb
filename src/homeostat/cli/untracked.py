"""Things of the local cloud that no stack has: left when a database was set back, or lost."""

import contextlib
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from homeostat.cli import pictures
from homeostat.cli.confirmation import confirm
from homeostat.cli.errors import FAILED, OK, Problem, Usage
from homeostat.cli.output import console, write_json
from homeostat.clouds.local import LocalCloud, inventory
from homeostat.clouds.local.tree import ThingRecord
from homeostat.model.errors import HomeostatError, Transient
from homeostat.resources.registry import listed, of_kind, type_of
from homeostat.store.database import Database
from homeostat.store.operation import cloud_identities, health
from homeostat.store.operation.cloud_identities import CloudLedger
from homeostat.store.operation.health import SteadyThing
from homeostat.store.shards import retained

PATIENCE_S = 30.0
"""Seconds in which things have to go of which others must go first."""
PAUSE_S = 0.2
TEMPLATE = "2021-04-16"
MADE = ("user_data",)
"""Fields that hold what the service made of a property, not the property."""


@dataclass(frozen=True, slots=True)
class Untracked:
    """A thing that no stack has.

    Attributes:
        kind: Kind of the cloud port.
        id: Id in the cloud.
        name: Its name there; "" for none.
        project: The project that owns it.
        created_at: ISO 8601 in UTC.
        resource_type: Resource type by which a stack can adopt it; "" for none.
        kept: Why it was kept on purpose, if it was.
    """

    kind: str
    id: str
    name: str
    project: str
    created_at: str
    resource_type: str
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the local cloud and the rows say of each other.

    Attributes:
        untracked: The things that no stack has, oldest first, with their records.
        lost: Resources that are complete, and whose things are gone.
    """

    untracked: Mapping[Untracked, ThingRecord]
    lost: Sequence[SteadyThing]


def compare(db: Database, root: Path, identity: str) -> Comparison:
    """Compare the things of the cloud with the rows.

    Both change meanwhile: things are read before and after the rows, and only differences that persist count.

    Args:
        db: The database.
        root: Directory of the cloud.
        identity: Identity that the cloud must have; "" for any.

    Raises:
        Transient: One of them cannot be read.
    """
    before = inventory.records(root, identity)
    with db.read() as tx:
        rows = {kind: health.unowned(tx, _tokens(things)) for kind, things in before.items()}
        kept = {kind: retained.among(tx, kind, handles) for kind, handles in rows.items()}
        steady = health.steady(tx, {name for names in of_kind(before).values() for name in names})
    after = inventory.records(root, identity)
    reasons = {
        (kind, each.handle): f"{each.name} of stack {each.stack}: {each.reason}"
        for kind, some in kept.items()
        for each in some
    }
    untracked = {
        _described(kind, handle, after[kind][handle], reasons.get((kind, handle), "")): after[kind][handle]
        for kind, handles in rows.items()
        for handle in handles & after[kind].keys()
    }
    in_order = sorted(untracked.items(), key=lambda item: (item[0].created_at, item[0].kind, item[0].id))
    return Comparison(dict(in_order), [row for row in steady if row.handle not in after[type_of(row.type).kind]])


def found(db: Database, root: Path, project: str = "") -> Mapping[Untracked, ThingRecord]:
    """Return the things that no stack has, oldest first, with their records; `project` — of this one alone.

    Raises:
        Problem: The database or the cloud cannot be read.
    """
    if db.missing_file or not db.schema_status().usable:
        raise Problem("there is no database of this version: `homeostat doctor` says more")
    try:
        with db.read() as tx:
            known = cloud_identities.identity(tx, "local")
        if not known and not root.exists():
            return {}
        things = compare(db, root, known).untracked
    except Transient as error:
        raise Problem(f"it cannot be seen what is there: {error}") from error
    return {each: record for each, record in things.items() if project in ("", each.project)}


def _tokens(things: Mapping[str, ThingRecord]) -> dict[str, str]:
    return {handle: each.token for handle, each in things.items()}


def _described(kind: str, handle: str, record: ThingRecord, kept: str) -> Untracked:
    at = datetime.fromtimestamp(record.created_at, UTC).isoformat(timespec="seconds")
    return Untracked(kind, handle, str(record.spec.get("name") or ""), record.project, at, _type(kind), kept)


def _type(kind: str) -> str:
    """Return the resource type with which a stack can adopt things of a kind."""
    fitting = [name for name in listed("OS::") if type_of(name).kind == kind and not type_of(name).renamed_to]
    return min(fitting, key=lambda name: (len(name), name), default="")


# -- commands ----------------------------------------------------------------------------------------------------------


def show(db: Database, root: Path, project: str, *, as_json: bool) -> int:
    """List the things, with what to do about them."""
    things = [*found(db, root, project)]
    if as_json:
        write_json({"untracked": [asdict(each) for each in things]})
        return OK
    out = console()
    if not things:
        out.print("Stacks have everything that is there.")
        return OK
    rows = [[each.kind, each.id, each.name, each.project, each.created_at, each.kept] for each in things]
    out.print(pictures.table(("kind", "id", "name", "project", "made at", "kept by"), rows))
    out.print(remedies(things), soft_wrap=True)
    return OK


def remedies(things: Sequence[Untracked]) -> str:
    """Return the commands that adopt or delete things."""
    project, id = shlex.quote(things[0].project), shlex.quote(things[0].id)
    return (
        "\nTo adopt them, write a file that describes them, and correct it until the plan shows no difference:\n"
        f"  homeostat untracked --in-project {project} --adoption-file found.yaml\n"
        "  homeostat plan --adopt-file found.yaml NAME\n"
        "  openstack stack adopt --adopt-file found.yaml NAME\n"
        f"To delete one: homeostat untracked --delete {id}\n"
        "To delete all that were not kept on purpose: homeostat untracked --delete-all"
    )


def write_adoption(db: Database, root: Path, project: str, target: Path) -> int:
    """Write the document by which a stack of a project can adopt what no stack has.

    Raises:
        Usage: Several projects have things, and none is named.
        Problem: There is nothing to adopt, or the file is there.
    """
    things = {each: record for each, record in found(db, root, project).items() if each.resource_type}
    projects = sorted({each.project for each in things})
    if len(projects) > 1:
        raise Usage(f"a stack has things of one project: choose one with --in-project: {', '.join(projects)}")
    if not things:
        raise Problem("there is nothing that a stack could adopt")
    names = _names(list(things))
    names_of = {each.id: name for each, name in names.items()}
    resources = {
        name: {
            "type": each.resource_type,
            "properties": _referring(_properties(each.resource_type, things[each].spec), names_of),
        }
        for each, name in names.items()
    }
    document = {
        "template": {"heat_template_version": TEMPLATE, "resources": resources},
        "resources": {name: {"type": each.resource_type, "resource_id": each.id} for each, name in names.items()},
    }
    try:
        with target.open("x", encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
    except OSError as error:
        raise Problem(f"{target} cannot be written: {error.strerror}") from error
    console().print(f"{target} describes {len(names)} things: look with homeostat plan --adopt-file {target} NAME")
    return OK


def _names(things: Sequence[Untracked]) -> dict[Untracked, str]:
    """Return a name of a resource for each thing: its kind, with a number from the second one on."""
    counts: dict[str, int] = {}
    names = {}
    for each in things:
        counts[each.kind] = number = counts.get(each.kind, 0) + 1
        names[each] = each.kind if number == 1 else f"{each.kind}_{number}"
    return names


def _properties(resource_type: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a specification stands for, as far as they have the same names."""
    kind = type_of(resource_type)
    fields = {kind.renamed.get(name, name): name for name in kind.properties if name not in kind.deprecated_properties}
    return {fields[field]: value for field, value in spec.items() if field in fields and field not in MADE and value}


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which ids of things are references to the resources with these names."""
    if isinstance(value, Mapping):
        return {key: _referring(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_referring(each, names) for each in value]
    return {"get_resource": names[value]} if isinstance(value, str) and value in names else value


def delete(db: Database, root: Path, ids: Sequence[str], project: str, *, yes: bool, as_json: bool) -> int:
    """Delete things; those that others need go after these.

    Args:
        db: The database.
        root: Directory of the cloud.
        ids: Ids of things; none for all that were not kept on purpose.
        project: The project whose things they are; "" for any.
        yes: Whether no person is asked.
        as_json: Print JSON.

    Raises:
        Problem: The database does not know this cloud; an id is that of none of the things, or of several; the answer
            is no.
        Usage: There is no terminal to ask at.
    """
    things = [*found(db, root, project)]
    with db.read() as tx:
        if not cloud_identities.identity(tx, "local"):
            # To another database all that is there is untracked.
            raise Problem(f"the database has never had the cloud in {root}: name the right one, nothing was deleted")
    _check_ids(things, ids)
    chosen = [each for each in things if (each.id in ids if ids else not each.kept)]
    if chosen and not yes:
        question = f"This deletes {len(chosen)} things, with their data. Go on?"
        confirm(
            question,
            f"this would delete {len(chosen)} things, with their data: allow it with -y",
            "nothing was deleted",
        )
    with contextlib.closing(LocalCloud(root, CloudLedger(db, "local"))) as cloud:
        left = _delete(cloud, chosen)
    gone = [each for each in chosen if each not in left]
    if as_json:
        write_json({"deleted": [each.id for each in gone], "failed": {each.id: str(left[each]) for each in left}})
    else:
        out = console()
        out.print(f"deleted: {len(gone)}")
        for each, error in left.items():
            out.print(f"{each.kind} {each.id} remains: {error}", soft_wrap=True)
    return FAILED if left else OK


def _check_ids(things: Sequence[Untracked], ids: Sequence[str]) -> None:
    """Make sure that each id is that of one thing: some are names that users give.

    Raises:
        Problem: One is not.
    """
    counts = Counter(each.id for each in things)
    unknown = sorted({*ids} - counts.keys())
    if unknown:
        raise Problem(f"no such things, or stacks have them: {', '.join(unknown)}; nothing was deleted")
    several = sorted(id for id in ids if counts[id] > 1)
    if several:
        raise Problem(
            f"several things have these ids: {', '.join(several)}; choose with --in-project, nothing was deleted"
        )


def _delete(cloud: LocalCloud, things: Sequence[Untracked]) -> dict[Untracked, HomeostatError]:
    """Delete things; return those that remain, with the reason."""
    left: dict[Untracked, HomeostatError] = dict.fromkeys(things, Transient("it is still there"))
    deadline = time.monotonic() + PATIENCE_S
    for _ in _rounds(deadline):
        for each in [*left]:
            (answer,) = cloud.of(each.project).delete(each.kind, [each.id])
            if isinstance(answer, HomeostatError):
                left[each] = answer
            elif not answer.present:
                del left[each]
        if not left:
            break
    return left


def _rounds(deadline: float) -> Iterator[None]:
    yield
    while time.monotonic() < deadline:
        time.sleep(PAUSE_S)
        yield
