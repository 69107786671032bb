"""A consistent view of the tree for one batch."""

from dataclasses import replace
from typing import Any

from homeostat.clouds.local.tree import ThingRecord, Tree
from homeostat.model.errors import Terminal, ambiguous


class TreeSnapshot:
    """A consistent view of the tree for a batch, which reads each kind at most once.

    It shows the same objects as the tree's view; `everything` has the objects of all projects, for shared resources
    such as addresses. Create the snapshot under `Tree.lock` if a decision depends on it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._everything: dict[str, dict[str, ThingRecord]] = {}
        self._kinds: dict[str, dict[str, ThingRecord]] = {}

    def everything(self, kind: str) -> dict[str, ThingRecord]:
        """Return the records of a kind in all projects, by id."""
        if kind not in self._everything:
            self._everything[kind] = self._tree.whole.all(kind)
        return self._everything[kind]

    def all(self, kind: str) -> dict[str, ThingRecord]:
        if kind not in self._kinds:
            records = self.everything(kind)
            self._kinds[kind] = {id: record for id, record in records.items() if self._tree.sees(record)}
        return self._kinds[kind]

    def get(self, kind: str, id: str) -> ThingRecord | None:
        if kind in self._kinds:
            return self._kinds[kind].get(id)
        return self._tree.read(kind, id)

    def called(self, kind: str, reference: str) -> str | None:
        """Return the id of the object with this id or name; None if absent.

        Raises:
            Rejected: Several objects have the name.
        """
        if self.get(kind, reference) is not None:
            return reference
        named = self._named(kind, reference)
        if len(named) > 1:
            raise ambiguous(reference)
        return named[0].id if named else None

    def _named(self, kind: str, name: str) -> list[ThingRecord]:
        return [record for record in self.all(kind).values() if record.spec.get("name") == name]

    def resolve(self, kind: str, reference: str) -> ThingRecord:
        """Return the object with this id, or else with this name.

        Raises:
            Terminal: The object does not exist, or the name is ambiguous.
        """
        record = self.get(kind, reference)
        if record is not None:
            return record
        named = self._named(kind, reference)
        if len(named) == 1:
            return named[0]
        if named:
            raise Terminal(f"{len(named)} things of kind {kind} are named {reference!r}: refer to one by its id")
        known = sorted({record.spec.get("name") or record.id for record in self.all(kind).values()})
        raise Terminal(f"There is no {kind} {reference!r}; known are: {', '.join(known[:20]) or 'none'}")

    def referring(self, kind: str, fact: str, id: str) -> list[ThingRecord]:
        """Return the objects of a kind whose fact is `id`, or a list that contains `id`."""
        return [record for record in self.all(kind).values() if _mentions(record.facts.get(fact), id)]

    def outlived(self, record: ThingRecord) -> bool:
        """Return whether an object was created only for another object, which no longer exists.

        Raises:
            Damaged: The record of the other object cannot be read.
            Transient: The directory is away.
        """
        user = record.facts.get("used_by") if record.facts.get("own") else None
        return user is not None and self._tree.whole.read(*user) is None

    def store(self, record: ThingRecord) -> None:
        self._tree.write(record)
        if self._tree.project is not None:
            record = replace(record, project=record.project or self._tree.project)
        for known in (self._kinds, self._everything):
            if record.kind in known:
                known[record.kind][record.id] = record

    def drop(self, record: ThingRecord) -> None:
        self._tree.remove(record.kind, record.id)
        for known in (self._kinds, self._everything):
            if record.kind in known:
                known[record.kind].pop(record.id, None)


def _mentions(fact: Any, id: str) -> bool:
    return id in fact if isinstance(fact, list) else fact == id
