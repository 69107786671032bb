"""Several losses in one moment, and one complaint over and over: what single faults do not show."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeostat.services.marks import MarkRequest
from tests.simulation.actors import Api

if TYPE_CHECKING:
    from tests.simulation.trouble import TroubledWorld


class Losses:
    """What happens to many things at once. rng — of its own, so that worlds without this stay as they are."""

    def __init__(self, world: "TroubledWorld", rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._target: tuple[str, str] | None = None

    def acts(self) -> list[tuple[float, Callable[[], None]]]:
        """With their weights."""
        rng = self._rng
        chosen = [(3.0, self._dependents_vanish), (1.5, self._kind_vanishes), (4.0, self._mark_again)]
        return [(weight * rng.choice((0, 1, 1, 2)), act) for weight, act in chosen]

    def _dependents_vanish(self) -> None:
        """A thing, all that was built on it, and what it was built on, behind everybody's back."""
        rows = {row.key: row for row in self._world.rows() if row.handle}
        if not rows:
            return
        gone = {self._rng.choice(sorted(rows))}
        for _ in range(2):
            gone |= {key for key, row in rows.items() if gone & set(row.requires)}
            gone |= {needed for key in gone for needed in rows[key].requires if needed in rows}
        self._vanish({rows[key].handle for key in gone})

    def _kind_vanishes(self) -> None:
        """All servers, or all volumes, of a project."""
        cloud = self._world.clouds[self._rng.choice(self._world.projects)]
        kinds = sorted({handle.rpartition("-")[0] for handle in cloud.things()})
        if kinds:
            kind = self._rng.choice(kinds)
            self._vanish({handle for handle in cloud.things() if handle.rpartition("-")[0] == kind})

    def _vanish(self, handles: set[str]) -> None:
        found = []
        for cloud in self._world.clouds.values():
            for handle in sorted(handles & cloud.things().keys() - cloud.theirs):
                cloud.vanish(handle)
                found.append(handle)
        for handle in found:
            self._world.sight(handle)
        self._world.note(f"{found} vanish at once")

    def _mark_again(self) -> None:
        """A program says of the same resource, again and again, that it is unhealthy, whatever became of it."""
        rows = sorted({(row.stack_id, row.name) for row in self._world.rows()})
        if not rows:
            return
        if self._target not in rows or self._rng.random() < 0.1:
            self._target = self._rng.choice(rows)
        stack_id, name = self._target
        request = MarkRequest(
            True, "it does not answer", reporter="monitor", lasts_s=self._rng.choice((None, None, 5.0))
        )
        alive = [api for api in self._world.apis if api.alive]
        for api in self._rng.choices(alive, k=self._rng.choice((1, 2, 4))) if alive else ():
            _send_mark(api, stack_id, request, name)
        self._world.note(f"user: mark {name} of {stack_id[:6]} once more")


def _send_mark(api: Api, stack_id: str, request: MarkRequest, name: str) -> None:
    api.requests.append(lambda _: api.marks.mark(stack_id, request, {"": name}))
