"""Users who want stacks, change their minds, and ask for everything else that there is to ask for."""

import random
from collections.abc import Callable
from typing import Any

from homeostat.model.status import Action, Status
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkRequest
from tests.simulation.actors import Api
from tests.simulation.parts import Act, Part
from tests.simulation.templates import DesiredStack, TemplateMutator


def goes_on(stack: Any) -> bool:
    return bool(stack.deleted_at is None and stack.status == Status.IN_PROGRESS)


class Users(Part):
    """desired — what they want of each stack, by its id; gardener — what grows their templates; hold — what holds
    resources of these back.

    Takes: climate — decides how often they ask for what; nested, careful — see `TemplateMutator`.
    """

    def __init__(self, climate: random.Random, *, nested: bool, careful: bool) -> None:
        self._climate = climate
        self._nested, self._careful = nested, careful
        self._created = 0
        self.desired: dict[str, DesiredStack] = {}
        self.hold: Callable[[DesiredStack], DesiredStack] = lambda desired: desired

    def begin(self) -> None:
        self.gardener = TemplateMutator(self.rng, nested=self._nested, careful=self._careful)
        often: list[tuple[float, Act]] = [
            *((0.7, self.cancel), (0.7, self._observe), (0.7, self._converge), (0.7, self._check)),
            *((0.7, self._switch), (0.5, self._race), (0.5, self._purge)),
        ]
        self.world.acts += self.always()
        self.world.acts += [(weight * self._climate.choice((0, 1, 1, 3)), act) for weight, act in often]

    def always(self) -> list[tuple[float, Act]]:
        """What users of all worlds do."""
        return [(1.5, self.create), (4, self.update), (1.5, self._delete)]

    def ask(self, act: Callable[[Api], object], story: str, rng: random.Random | None = None) -> None:
        """Have a process serve a request, if one is there. rng — chooses it."""
        serving = self.world.serving
        if serving:
            (rng or self.rng).choice(serving).requests.append(act)
            self.note(f"user: {story}")

    # -- stacks ------------------------------------------------------------------------------------------------------

    def stack(self) -> str | None:
        """Id of the stack that a user has in mind."""
        return self.rng.choice(sorted(self.desired)) if self.desired else None

    def resting(self) -> str | None:
        """A stack of which nothing goes on, if there is one, mostly."""
        busy = {each.root_id for each in self.world.all_stacks() if each.deleted_at is not None or goes_on(each)}
        found = sorted(self.desired.keys() - busy)
        return self.rng.choice(found) if found and self.rng.random() < 0.9 else self.stack()

    def named(self) -> tuple[str, dict[str, Any]]:
        """Name of a new stack, and options of the request that makes it."""
        name = self.new_name("s")
        return name, {"disable_rollback": self.rng.random() < 0.5, "timeout_mins": self.rng.choice((None, None, 1))}

    def new_name(self, prefix: str) -> str:
        self._created += 1
        return f"{prefix}{self._created - 1}"

    def create(self) -> None:
        desired = self.hold(self.gardener.grow())
        name, options = self.named()
        self.create_as(name, desired, **options)

    def create_as(self, name: str, desired: DesiredStack, **options: Any) -> None:
        project = self.rng.choice(self.world.projects)

        def create(api: Api) -> None:
            self.desired[api.stack_service.create(project, None, name, desired.request(**options))] = desired

        self.ask(create, f"create {project}/{name} {options} {desired}")

    def update(self) -> None:
        stack_id = self.stack()
        if stack_id is None:
            return
        desired = self.hold(self.gardener.mutate(self.desired[stack_id]))
        patch, look_first = self.rng.random() < 0.2, self.rng.random() < 0.1

        def update(api: Api) -> None:
            api.stack_service.update(stack_id, desired.request(look_first=look_first), patch=patch)
            self.desired[stack_id] = desired

        self.ask(update, f"update {stack_id[:6]} {patch=} {look_first=} {desired}")

    def want(self, stack_id: str, desired: DesiredStack, story: str) -> None:
        """Update a stack to this. story — begins the line about it."""

        def update(api: Api) -> None:
            api.stack_service.update(stack_id, desired.request())
            self.desired[stack_id] = desired

        self.ask(update, story)

    def _delete(self) -> None:
        stack_id = self.stack()
        if stack_id is not None:
            self.delete(stack_id)

    def delete(self, stack_id: str) -> None:
        self.ask(lambda api: api.stack_service.delete(stack_id), f"delete {stack_id[:6]}")

    def cancel(self, stack_id: str | None = None) -> None:
        """Of this stack or of any."""
        stack_id, roll_back = stack_id or self.stack(), self.rng.random() < 0.5
        if stack_id is not None:
            of = stack_id
            self.ask(lambda api: api.stack_service.cancel(of, roll_back=roll_back), f"cancel {of[:6]} {roll_back=}")

    def _race(self) -> None:
        """Several users want something else of one stack in the same moment."""
        for _ in range(3):
            acts: tuple[Act, ...] = (self.update, self.update, self.cancel, self._delete)
            self.rng.choice(acts)()

    # -- stacks and resources ----------------------------------------------------------------------------------------

    def _place(self) -> tuple[str, str | None] | None:
        """A stack or one of its resources, nested ones too."""
        rows = sorted((row.stack_id, row.name) for row in self.world.rows())
        if not rows:
            return None
        stack_id, name = self.rng.choice(rows)
        return (stack_id, name) if self.rng.random() < 0.5 else (stack_id, None)

    def _observe(self) -> None:
        place = self._place()
        if place is not None:
            self.ask(lambda api: api.actions.observe(*place), f"observe {place}")

    def _converge(self) -> None:
        place = self._place()
        if place is not None:
            self.ask(lambda api: api.actions.converge(*place), f"converge {place}")
            if place[1] is not None:
                self.world.mended.add(place[0])

    def _check(self) -> None:
        stack_id = self.stack()
        if stack_id is not None:
            self.ask(lambda api: api.actions.begin(stack_id, Action.CHECK), f"check {stack_id[:6]}")

    def _switch(self) -> None:
        """On or off, for a stack or one of its resources, and how often it is looked at."""
        place = self._place()
        if place is None:
            return
        stack_id, name = place
        values = {"converge": self.rng.random() < 0.5, "observe_s": self.rng.choice((None, 0.0, 5.0, 100.0))}
        switches = (
            ConvergenceSettings(values)
            if name is None
            else ConvergenceSettings({}, {name: self.rng.choice((values, {}))})
        )
        self.ask(lambda api: api.actions.switch(stack_id, switches), f"switch {stack_id[:6]} {switches}")

    def mark(self) -> None:
        """A user says that one resource or several of a stack are unhealthy, perhaps for a while; or well again."""
        resting = self.rng.random() < 0.9
        chosen = (row for row in self.world.rows() if not resting or row.status == Status.COMPLETE)
        rows = sorted((row.stack_id, row.name, row.handle) for row in chosen)
        if not rows:
            return
        stack_id = self.rng.choice(rows)[0]
        mine = [name for id, name, _ in rows if id == stack_id] + [handle for id, _, handle in rows if id == stack_id]
        targets = [self.rng.choice(mine) for _ in range(self.rng.choice((1, 1, 1, 3)))]
        request = MarkRequest(self.rng.random() < 0.8, "by hand", lasts_s=self.rng.choice((None, None, 1.0, 30.0)))
        places = {f"resources[{place}]": target for place, target in enumerate(targets) if target}
        if places:
            story = f"mark {targets} of {stack_id[:6]}: {request}"
            self.ask(lambda api: api.marks.mark(stack_id, request, places), story)

    def _purge(self) -> None:
        api = self.rng.choice(self.world.apis)
        api.purge(self.rng.choice((0.0, 60.0)), self.rng.choice((5, 1000)))
