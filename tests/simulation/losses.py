"""Several losses in one moment, and one complaint over and over: what single faults do not show."""

from homeostat.services.marks import MarkRequest
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.users import Users


class Losses(Part):
    """What happens to many things at once. Takes: certain — whether it does in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain
        self._target: tuple[str, str] | None = None

    def begin(self) -> None:
        self._dice = self.dice("losses")
        if self._dice.random() < 0.4 or self._certain:
            self.world.part(Users).gardener.links = self._dice.random() < 0.6 or self._certain
            often = [(3.0, self._dependents_vanish), (1.5, self._kind_vanishes), (4.0, self._mark_again)]
            self.world.acts += [(weight * self._dice.choice((0, 1, 1, 2)), act) for weight, act in often]

    def _dependents_vanish(self) -> None:
        """A thing, all that was built on it, and what it was built on, behind everybody's back."""
        rows = {row.key: row for row in self.world.rows() if row.handle}
        if not rows:
            return
        gone = {self._dice.choice(sorted(rows))}
        for _ in range(2):
            gone |= {key for key, row in rows.items() if gone & set(row.requires)}
            gone |= {needed for key in gone for needed in rows[key].requires if needed in rows}
        self._vanish({rows[key].handle for key in gone})

    def _kind_vanishes(self) -> None:
        """All servers, or all volumes, of a project."""
        cloud = self.world.clouds[self._dice.choice(self.world.projects)]
        kinds = sorted({handle.rpartition("-")[0] for handle in cloud.things()})
        if kinds:
            kind = self._dice.choice(kinds)
            self._vanish({handle for handle in cloud.things() if handle.rpartition("-")[0] == kind})

    def _vanish(self, handles: set[str]) -> None:
        found = []
        for cloud in self.world.clouds.values():
            for handle in sorted(handles & cloud.things().keys() - cloud.theirs):
                cloud.vanish(handle)
                found.append(handle)
        for handle in found:
            self.world.part(Disturbances).sight(handle)
        self.world.happened["losses"] += 1
        self.note(f"{found} vanish at once")

    def _mark_again(self) -> None:
        """A program says of the same resource, again and again, that it is unhealthy, whatever became of it."""
        rows = sorted({(row.stack_id, row.name) for row in self.world.rows()})
        if not rows:
            return
        if self._target not in rows or self._dice.random() < 0.1:
            self._target = self._dice.choice(rows)
        stack_id, name = self._target
        request = MarkRequest(
            True, "it does not answer", reporter="monitor", lasts_s=self._dice.choice((None, None, 5.0))
        )
        alive = self.world.serving
        for api in self._dice.choices(alive, k=self._dice.choice((1, 2, 4))) if alive else ():
            api.requests.append(lambda api: api.marks.mark(stack_id, request, {"": name}))
        self.world.happened["repeated marks"] += 1
        self.note(f"user: mark {name} of {stack_id[:6]} once more")
