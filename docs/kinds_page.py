"""The page of the kinds of things that clouds have, for those who write a cloud adapter."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType

from docs.type_pages import row

from homeostat import kinds
from homeostat.kinds.base import Field, Kind, Statuses
from homeostat.kinds.effects import EFFECTS
from homeostat.kinds.exclusive import EXCLUSIVE, LETS_GO_IN
from homeostat.resources.kind_fields import fields_of

HEAD = """\
# Kinds of things

What a cloud adapter (`homeostat.clouds.port.Cloud`) is asked for and reports, by service: `homeostat.kinds` as a page.
Every thing has the field `id`. A cloud may report further fields, and leaves out those that it does not have. A field
of any type may be null. Things of every kind may have the status `deleting`. How to bring an adapter is in
[Write a resource type](../howto/write-a-resource-type.md#declared).

- **set once**: a creation may set the field, and it never changes
- **set**: a creation may set it, and an update may change it in place
- **reported**: the cloud alone sets it
""".splitlines()
REMEDIES = {"RECREATE": "deleted and made anew", "UPDATE": "updated", "MANUAL": "left to the user"}


def page() -> str:
    lines = [*HEAD]
    for module in _modules():
        lines += ["", f"## {(module.__doc__ or '').partition(':')[0].splitlines()[0].rstrip('.')}"]
        for kind in module.KINDS:
            lines += _kind(kind)
    return "\n".join([*lines, ""])


def _modules() -> Iterator[ModuleType]:
    names = sorted(each.name for each in pkgutil.iter_modules(kinds.__path__))
    return (
        importlib.import_module(f"homeostat.kinds.{name}")
        for name in names
        if name not in ("base", "effects", "exclusive", "registry")
    )


def _kind(kind: Kind) -> Iterator[str]:
    yield from ("", f"### {kind.name}", "", kind.description)
    known = fields_of(kind.name)
    groups: Mapping[str, Mapping[str, Field]] = {
        "set once": known.fixed,
        "set": known.mutable,
        "reported": known.reported,
    }
    if any(groups.values()):
        yield from ("", "| field | type | | |", "|---|---|---|---|")
    for group, fields in groups.items():
        for name, field in fields.items():
            note = ", ".join(filter(None, (f"`{field.shape}`" if field.shape else "", field.note, _once(kind, name))))
            yield row(f"`{name}`", field.type.value, group, note)
    if kind.statuses.words and "status" in kind.reported:
        yield from ("", *_statuses(kind))
    if kind.operations:
        yield from ("", "Operations:", "")
        yield from (f"- `{name}`{': ' if text else ''}{text}" for name, text in kind.operations.items())
    if kind.id_field:
        yield from ("", f"Where `{kind.id_field}` is set, it is the id.")
    if kind.snapshot_field:
        yield from ("", f"It can be snapshotted; the field `{kind.snapshot_field}` takes the id of a snapshot.")
    yield from _exclusive(kind)
    yield from _effects(kind)
    for note in kind.notes:
        yield from ("", note)


def _effects(kind: Kind) -> Iterator[str]:
    """What its things change of others."""
    effects = EFFECTS.get(kind.name, ())
    if not effects:
        return
    yield from ("", "Changes, when it is made, changed or deleted:", "", "| of a | named by | what |", "|---|---|---|")
    for each in effects:
        paths = ", ".join(f"`{'.'.join(path)}`" for path in each.paths)
        through = f" (the `{each.through}` that it has)" if each.through else ""
        yield row(f"`{each.kind}`", paths + through, ", ".join(f"`{name}`" for name in each.changes))


def _exclusive(kind: Kind) -> Iterator[str]:
    """What one of its things at a time can hold."""
    held = EXCLUSIVE.get(kind.name, ())
    if not held:
        return
    yield from (
        "",
        "One at a time can hold:",
        "",
        "| what | as said by | an old one that is replaced by one with the same |",
        "|---|---|---|",
    )
    for each in held:
        places = [f"`{each.entries}`"] if each.entries else []
        fields = [", ".join(f"`{name}`" for name in each.fields)] if each.fields else []
        yield row(each.what, ": ".join([*places, *fields]), each.way.value)
    if kind.name in LETS_GO_IN:
        states = ", ".join(f"`{status}`" for status in sorted(LETS_GO_IN[kind.name]))
        yield from ("", f"It can let go of something while it is {states}, and is deleted first otherwise.")


def _once(kind: Kind, name: str) -> str:
    return "only in the response to the creation" if name in kind.creation_only else ""


def _statuses(kind: Kind) -> Iterator[str]:
    words = kind.statuses
    yield from ("| status | meaning |", "|---|---|")
    meanings = {
        "ready": words.ready,
        "busy: waited for": words.busy,
        **{
            f"broken: {text}": {w for w, r in words.broken.items() if r.name == name} for name, text in REMEDIES.items()
        },
        "suspended, where that is desired": words.suspended,
    }
    for meaning, found in meanings.items():
        if found:
            yield row(", ".join(f"`{word}`" for word in sorted(found)), meaning)
    for word, operation in words.operations.items():
        if word not in words.suspended:
            yield row(f"`{word}`", f"broken: the operation `{operation}` is called")


def _broken(words: Statuses, remedy: str) -> set[str]:
    return {word for word, each in words.broken.items() if each.name == remedy}
