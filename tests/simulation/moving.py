"""Users abandon stacks and adopt them again, long after, and more than once."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from homeostat.services.stacks import StackService
from homeostat.services.transfer import StackTransfer
from tests.simulation.disturbances import DisturbedWorld
from tests.simulation.templates import DesiredStack


class MovingWorld(DisturbedWorld):
    """A world in which stacks are abandoned and adopted."""

    _created: int
    _documents: list[tuple[dict[str, Any], DesiredStack]]
    _desired: dict[str, DesiredStack]
    adopted: int

    def _stack(self) -> str | None:
        raise NotImplementedError

    def _request_transfer(self, act: Callable[[StackTransfer], object], story: str) -> None:
        alive = [api for api in self.apis if api.alive]
        if alive:
            api = self.rng.choice(alive)

            def serve(_: StackService) -> None:
                act(api.moving)

            api.requests.append(serve)
            self.note(f"user: {story}")

    def _abandon(self) -> None:
        """A process that dies in the middle of it may have let go without an answer."""
        stack_id = self._stack()
        if stack_id is None:
            return
        desired = self._desired[stack_id]

        def abandon(moving: StackTransfer) -> None:
            document = json.loads(json.dumps(moving.abandon(stack_id)))
            self.watcher.promised |= _named(document)
            self._documents.append((document, desired))

        self._request_transfer(abandon, f"abandon {stack_id[:6]}")

    def _adopt(self) -> None:
        """A document may be adopted long after, while its things live on, break or vanish; and more than once."""
        if not self._documents:
            return
        document, desired = self.rng.choice(self._documents)
        name = f"s{self._created}"
        self._created += 1
        options = {"disable_rollback": self.rng.random() < 0.5, "timeout_mins": self.rng.choice((None, None, 1))}

        def adopt(moving: StackTransfer) -> None:
            request = replace(desired.request(**options), template=None)
            self._desired[moving.adopt(document["project_id"], None, name, request, document)] = desired
            self.adopted += 1

        self._request_transfer(adopt, f"adopt {document['id'][:6]} as {name} {options}")


def _named(document: dict[str, Any]) -> dict[str, str]:
    """Handles that a document names, each with the action that it tells of."""
    found: dict[str, str] = {}
    for each in document["resources"].values():
        if "resources" in each:
            found |= _named(each)
        elif each["resource_id"] is not None:
            found[each["resource_id"]] = each["action"]
    return found
