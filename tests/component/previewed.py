"""Previews beside what is done: what is shown of each resource, and what became of its row and its thing."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from homeostat.model.plan import Verb
from homeostat.planner.report.preview import Fate, ResourcePreview
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import Preview, all_of
from homeostat.store import schema
from tests.component.running import Service, template

Resources = dict[str, Any]
Place = tuple[str, ...]


def value(of: Any, **more: Any) -> Resources:
    return {"type": "OS::Heat::Value", "properties": {"value": of}, **more}


def random(length: int) -> Resources:
    return {"type": "OS::Heat::RandomString", "properties": {"length": length}}


def preview(service: Service, stack_id: str, resources: Resources, **options: Any) -> Preview:
    return service.stack_service.preview_update(stack_id, StackRequest(template(resources), **options))


def changes(shown: Preview) -> dict[Place, str]:
    """Of everything that would change."""
    return {(*each.path, note.name): note.fate.value for each, note in all_of(shown) if note.fate != "unchanged"}


def notes_of(shown: Preview, *, all_of_them: bool = False) -> list[ResourcePreview]:
    """Of everything that would change, or of everything."""
    return [note for _, note in all_of(shown) if all_of_them or note.fate is not Fate.UNCHANGED]


def state_of(service: Service) -> dict[Place, tuple[str, Any]]:
    """Path -> key of the row, and what it should be, of all that is there."""
    stack, resource = schema.stack, schema.resource
    with service.db.read() as tx:
        stacks = {row.id: row for row in tx.execute(select(stack).where(stack.c.deleted_at.is_(None)))}
        rows = list(tx.execute(select(resource)))

    def path(stack_id: str) -> Place:
        row = stacks[stack_id]
        return () if row.parent_id is None else (*path(row.parent_id), row.parent_name)

    return {
        (*path(row.stack_id), row.name): (row.key, (row.properties, row.metadata, row.deletion_policy))
        for row in rows
        if row.stack_id in stacks
    }


def done(before: dict[Place, Any], after: dict[Place, Any]) -> dict[Place, str]:
    """What became of what: judged by the rows that are there."""
    found = dict.fromkeys(before.keys() - after.keys(), "deleted")
    found |= dict.fromkeys(after.keys() - before.keys(), "added")
    for place in before.keys() & after.keys():
        if before[place][0] != after[place][0]:
            found[place] = "replaced"
        elif before[place][1] != after[place][1]:
            found[place] = "updated"
    return found


@contextmanager
def acting(service: Service) -> Iterator[dict[Place, set[Verb]]]:
    """Note which acts reach clouds and nested stacks, by the path of their resource."""
    found: dict[Place, set[Verb]] = defaultdict(set)
    execute = service.executor.execute

    def noted(world: Any, steps: Any, *more: Any, **named: Any) -> Any:
        for step in steps:
            if step.act.verb in (Verb.CREATE, Verb.UPDATE, Verb.OPERATE, Verb.DELETE):
                found[(*path_of(service, world.stack.id), step.row.name)].add(step.act.verb)
        return execute(world, steps, *more, **named)

    with patch.object(service.executor, "execute", noted):
        yield found


def path_of(service: Service, stack_id: str) -> Place:
    row = service.stack(stack_id)
    return () if row.parent_id is None else (*path_of(service, row.parent_id), row.parent_name)


def together(notes: list[ResourcePreview]) -> str:
    """Of one name: what goes and comes again is replaced."""
    changes = {note.fate for note in notes}
    return "replaced" if changes == {Fate.ADDED, Fate.DELETED} else notes[0].fate.value
