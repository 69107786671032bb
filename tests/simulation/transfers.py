"""Users abandon stacks and adopt them again, long after, and more than once."""

import json
from dataclasses import replace
from typing import Any

from tests.simulation.actors import Api
from tests.simulation.parts import Part
from tests.simulation.templates import DesiredStack
from tests.simulation.users import Users


class Transfers(Part):
    """Takes: certain — whether it happens in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain
        self._documents: list[tuple[dict[str, Any], DesiredStack]] = []

    def begin(self) -> None:
        self._users = self.world.part(Users)
        if self.dice("mover").random() < 0.2 or self._certain:
            self.world.acts += [(2.0, self._abandon), (3.0, self.adopt)]

    def _abandon(self) -> None:
        """A process that dies in the middle of it may have let go without an answer."""
        stack_id = self._users.stack()
        if stack_id is None:
            return
        desired = self._users.desired[stack_id]

        def abandon(api: Api) -> None:
            document = json.loads(json.dumps(api.moving.abandon(stack_id)))
            self.world.watcher.promised |= _named(document)
            self._documents.append((document, desired))

        self._users.ask(abandon, f"abandon {stack_id[:6]}")

    def adopt(self) -> None:
        """A document may be adopted long after, while its things live on, break or vanish; and more than once."""
        if not self._documents:
            return
        document, desired = self.rng.choice(self._documents)
        name, options = self._users.named()

        def adopt(api: Api) -> None:
            request = replace(desired.request(**options), template=None)
            stack_id = api.moving.adopt(document["project_id"], None, name, request, document)
            self._users.desired[stack_id] = desired
            self.world.happened["adopted"] += 1

        self._users.ask(adopt, f"adopt {document['id'][:6]} as {name} {options}")


def _named(document: dict[str, Any]) -> dict[str, str]:
    """Handles that a document names, each with the action that it tells of."""
    found: dict[str, str] = {}
    for each in document["resources"].values():
        if "resources" in each:
            found |= _named(each)
        elif each["resource_id"] is not None:
            found[each["resource_id"]] = each["action"]
    return found
