"""What a seed lets happen to a world: users who change their minds, crashes, faults, wrong clocks, outages."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.status import Action, Status
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.marks import MarkRequest
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.shards import brakes
from tests.simulation.doubting import Doubters
from tests.simulation.governing import Governor
from tests.simulation.losses import Losses
from tests.simulation.moving import MovingWorld
from tests.simulation.templates import DesiredStack, TemplateMutator, Warden
from tests.simulation.unkept_values import UnkeptValues

STEPS = 900
AT_HOOKS = "SELECT stack_id, name, json_extract(hooks, '$.at') FROM resource WHERE json_extract(hooks, '$.at') <> ''"
BOUND = """stack WHERE deleted_at IS NULL
    AND (lock IS NOT NULL OR suspended OR NOT converge OR coalesce(exceptions, 'null') NOT IN ('null', '{}'))"""
FOLLOWED = 0.02
"""Chance at each step that a process that has died is followed by another, as by the supervisor of a service."""


def weather_of(rng: random.Random) -> CloudBehaviour:
    faults = Faults(
        unreachable=rng.choice((0.0, 0.05)),
        refused=rng.choice((0.0, 0.1)),
        lost=rng.choice((0.0, 0.1)),
        error=rng.choice((0.0, 0.1)),
        snapshot=rng.choice((0.0, 0.1)),
        retry_after_s=rng.choice((None, 1.0, 20.0)),
    )
    return CloudBehaviour(
        build_s=rng.choice((0.0, 3.0)),
        delete_s=rng.choice((0.0, 2.0)),
        snapshot_s=rng.choice((0.0, 3.0)),
        listing_lag_s=rng.choice((0.0, 2.0)),
        idempotent=rng.random() < 0.5,
        quota=rng.choice((None, None, None, 6)),
        faults=faults,
    )


def _goes_on(stack: Any) -> bool:
    return bool(stack.deleted_at is None and stack.status == Status.IN_PROGRESS)


class TroubledWorld(MovingWorld):
    """A world whose seed also decides what sort of trouble there is: rarely everything at once.

    steps — how many steps it has before the calm; act_rate — chance at each step that something happens beside it;
    revival — see `FOLLOWED`.
    """

    steps = STEPS
    act_rate = 0.12
    revival = FOLLOWED

    def __init__(
        self,
        seed: int,
        *,
        careful: bool = False,
        held: bool = False,
        snapshots: bool = False,
        marked: bool = False,
        moving: bool = False,
        maintained: bool = False,
        lossy: bool = False,
        governed: bool = False,
        stepped: bool = False,
        unkept: bool = False,
    ) -> None:
        rng = random.Random(f"climate {seed}")
        wardens = random.Random(f"warden {seed}")
        super().__init__(
            seed,
            weather_of(rng),
            projects=rng.choice((("p",), ("p", "q"))),
            workers=rng.randint(1, 3),
            members_per_shard=rng.choice((2, 1000)),
            few=random.Random(f"few {seed}").choice((1, brakes.FEW)),
        )
        self._mutator = TemplateMutator(self.rng, nested=rng.random() < 0.6, careful=rng.random() < 0.3 or careful)
        self._usual = next(iter(self.clouds.values())).behaviour.faults
        self._desired: dict[str, DesiredStack] = {}
        self._created = 0
        self._beats = rng.random() < 0.5
        self._ends: list[tuple[float, Callable[[], None]]] = []
        if rng.random() < 0.5:
            self.apis.append(self._api())
        often = [(weight * rng.choice((0, 1, 1, 3)), act) for weight, act in self._optional()]
        self._acts = [*self._always(), *often]
        if random.Random(f"mover {seed}").random() < 0.2 or moving:
            self._acts += [(2.0, self._abandon), (3.0, self._adopt)]
        self._documents: list[tuple[dict[str, Any], DesiredStack]] = []
        self.adopted = 0
        self.cleared = 0
        self._warden: Warden | None = None
        self._add_warden(wardens, held=held)
        self.restored = 0
        self._keeper: random.Random | None = None
        self._add_keeper(random.Random(f"keeper {seed}"), snapshots=snapshots)
        if random.Random(f"prober {seed}").random() < 0.3 or marked:
            self._acts.append((20.0 if marked else 6.0, self._mark))
        if random.Random(f"loser {seed}").random() < 0.4:
            self._acts.append((3.0, self._hide))
        self._add_losses(random.Random(f"losses {seed}"), lossy=lossy)
        self._add_governor(random.Random(f"governor {seed}"), governed=governed)
        if random.Random(f"stepper {seed}").random() < 0.2 or stepped:
            self._acts.append((6.0, self._set_database_clock))
        self.unkept = UnkeptValues(self, random.Random(f"unkept {seed}"))
        self._acts += self.unkept.acts(certain=unkept)
        self._unswitched: set[str] = set()
        self.doubters = Doubters(self, patient=random.Random(f"patient {seed}").random() < 0.5)
        self._hidden: Counter[str] = Counter()
        if random.Random(f"caretaker {seed}").random() < 0.3 or maintained:
            self._acts += [(8.0, self._maintain), (5.0, self._lock_stack), (5.0, self._unlock_stack)]

    def _add_warden(self, wardens: random.Random, *, held: bool) -> None:
        if wardens.random() < 0.3 or held:
            self._warden = Warden(wardens, self._give())
            self._acts.append((10.0, self._clear))

    def _add_keeper(self, keepers: random.Random, *, snapshots: bool) -> None:
        if keepers.random() < 0.3 or snapshots:
            self._keeper = keepers
            self._acts.append((12.0, self._snapshot))

    def _add_governor(self, governors: random.Random, *, governed: bool) -> None:
        self._governor = Governor(self, governors)
        if governors.random() < 0.3 or governed:
            self._acts += [*self._governor.acts(), (8.0, self._mark), (8.0, self._disturb)]

    def _add_losses(self, losers: random.Random, *, lossy: bool) -> None:
        if losers.random() < 0.4 or lossy:
            self._mutator.links = losers.random() < 0.6 or lossy
            self._acts += Losses(self, losers).acts()

    def _always(self) -> list[tuple[float, Callable[[], None]]]:
        return [(1.5, self._create), (4, self._update), (1.5, self._delete)]

    def _optional(self) -> list[tuple[float, Callable[[], None]]]:
        return [
            (0.7, self._cancel),
            (0.7, self._observe),
            (0.7, self._converge),
            (0.7, self._check),
            (0.7, self._switch),
            (0.5, self._race),
            (0.5, self._purge),
            (1.5, self._kill),
            (0.7, self._die_inside),
            (0.7, self._make_flaky),
            (0.5, self._cut_off),
            (1.5, self._freeze),
            (1.5, self._disturb),
            (0.7, self._lock),
            (0.5, self._black_out),
            (0.5, self._limit_rate),
            (1, self._notice),
            (1, self._wake_twice),
            (0.7, self._jump_ahead),
            (0.7, self._set_clock),
        ]

    def _give(self) -> list[str]:
        """Volumes of others; one that a user may name is nowhere."""
        found = []
        for cloud in self.clouds.values():
            with patch.object(cloud.behaviour, "faults", Faults()), patch.object(cloud.behaviour, "quota", None):
                found += [cloud.give("volume", {"size": 1}) for _ in range(2)]
        self.watcher.retained.update([*found, "volume-999999"])
        return found

    # -- disturbing ---------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        self._create()
        weights = [weight for weight, _ in self._acts]
        for _ in range(self.steps):
            if self.rng.random() < self.act_rate:
                (act,) = self.rng.choices([act for _, act in self._acts], weights)
                act()
            self._end_outages()
            if self.rng.random() < self.revival:
                self.replace_dead()
            if self.rng.random() < 0.9 and not self.step():
                self._pass_time()
            if self._beats and self.rng.random() < 0.2:
                self._beat()
            self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1, 1.0))

    def calm(self) -> None:
        for _, end in self._ends:
            end()
        self._ends.clear()
        for cloud in self.clouds.values():
            for handle in cloud.things():
                cloud.change(handle, locked=False)
        super().calm()
        self.doubters.calm()
        self._unswitched = {stack.id for stack in self.all_stacks()}
        self._free()

    def _free(self) -> None:
        """Users unlock what is locked, resume what is suspended, and switch convergence on, as soon as they may. Nested
        stacks follow, but for those that were retained when their resource went: these are resumed by themselves."""
        if not (self._unswitched or self._is_any(BOUND)):
            return
        actions = StackActions(self.db, 900.0)
        for stack in self.all_stacks():
            if stack.deleted_at is not None:
                self._unswitched.discard(stack.id)
                continue
            if stack.lock is None and (stack.id in self._unswitched or not stack.converge or stack.exceptions):
                exceptions: dict[str, dict[str, Any]] = {key: {} for key in stack.exceptions or {}}
                actions.switch(stack.id, ConvergenceSettings({"converge": True, "observe_s": None}, exceptions))
                self._unswitched.discard(stack.id)
            retained = stack.id in self.watcher.retained and stack.lock is None
            busy = [each for each in self.all_stacks() if stack.id in (each.id, each.root_id) and _goes_on(each)]
            if (stack.parent_id is not None and not retained) or busy:
                continue
            if stack.lock is not None:
                self.note(f"unlock {stack.name} at last")
                actions.unlock(stack.id, lambda _: True)
            elif stack.suspended:
                self.note(f"resume {stack.name} at last")
                actions.begin(stack.id, Action.RESUME)

    # -- users -------------------------------------------------------------------------------------------------------

    def _request(self, request: Callable[[StackService], None], story: str) -> None:
        alive = [api for api in self.apis if api.alive]
        if alive:
            self.rng.choice(alive).requests.append(request)
            self.note(f"user: {story}")

    def _create(self) -> None:
        name = f"s{self._created}"
        self._created += 1
        desired = self._held(self._mutator.grow())
        options = {
            "disable_rollback": self.rng.random() < 0.5,
            "timeout_mins": self.rng.choice((None, None, 1)),
        }
        project = self.rng.choice(self.projects)

        def create(stack_service: StackService) -> None:
            self._desired[stack_service.create(project, None, name, desired.request(**options))] = desired

        self._request(create, f"create {project}/{name} {options} {desired}")

    def _update(self) -> None:
        stack_id = self._stack()
        if stack_id is None:
            return
        desired = self._held(self._mutator.mutate(self._desired[stack_id]))
        patch, look_first = self.rng.random() < 0.2, self.rng.random() < 0.1

        def update(stack_service: StackService) -> None:
            stack_service.update(stack_id, desired.request(look_first=look_first), patch=patch)
            self._desired[stack_id] = desired

        self._request(update, f"update {stack_id[:6]} {patch=} {look_first=} {desired}")

    def _held(self, desired: DesiredStack) -> DesiredStack:
        return self._warden.hold(desired) if self._warden is not None else desired

    def _waiting(self) -> list[tuple[str, str, str]]:
        """What waits at a hook: stack, resource, hook."""
        return sorted(self.db.raw.execute(AT_HOOKS))

    def _is_any(self, which: str) -> bool:
        return self.db.raw.execute(f"SELECT 1 FROM {which} LIMIT 1").fetchone() is not None

    def _clear(self) -> None:
        waiting = self._waiting()
        if waiting:
            place = self.rng.choice(waiting)
            self.act_on(lambda actions: actions.clear_hook(*place), f"clear {place}")
            self.cleared += 1

    def _jump(self, rested_at: float | None) -> None:
        """After the calm a user clears all hooks, and frees what was locked, suspended or switched off, perhaps by a
        request that was served late: nothing waits for ever."""
        for place in self._waiting():
            if not self._is_locked(place[0]):
                StackActions(self.db, 900.0).clear_hook(*place)
                self.cleared += 1
        self._free()
        self.doubters.agree()
        self._governor.release_all()
        super()._jump(rested_at)

    def settle(self, within_s: float = 7200.0) -> None:
        super().settle(within_s)
        self._governor.check()
        self.unkept.check()

    def _is_locked(self, stack_id: str) -> bool:
        return any(each.id == stack_id and each.lock is not None for each in self.all_stacks())

    def _delete(self) -> None:
        stack_id = self._stack()
        if stack_id is not None:
            self._request(lambda stack_service: stack_service.delete(stack_id), f"delete {stack_id[:6]}")

    def _cancel(self) -> None:
        stack_id, roll_back = self._stack(), self.rng.random() < 0.5
        if stack_id is not None:
            self._request(
                lambda stack_service: stack_service.cancel(stack_id, roll_back=roll_back),
                f"cancel {stack_id[:6]} {roll_back=}",
            )

    def _race(self) -> None:
        """Several users want something else of one stack in the same moment."""
        for _ in range(3):
            self.rng.choice((self._update, self._update, self._cancel, self._delete))()

    def act_on(self, act: Callable[[StackActions], object], story: str) -> None:
        alive = [api for api in self.apis if api.alive]
        if alive:
            api = self.rng.choice(alive)

            def serve(_: StackService) -> None:
                act(api.actions)

            api.requests.append(serve)
            self.note(f"user: {story}")

    def _place(self) -> tuple[str, str | None] | None:
        """A stack or one of its resources, nested ones too."""
        rows = sorted((row.stack_id, row.name) for row in self.rows())
        if not rows:
            return None
        stack_id, name = self.rng.choice(rows)
        return (stack_id, name) if self.rng.random() < 0.5 else (stack_id, None)

    def _observe(self) -> None:
        place = self._place()
        if place is not None:
            self.act_on(lambda actions: actions.observe(*place), f"observe {place}")

    def _converge(self) -> None:
        place = self._place()
        if place is not None:
            self.act_on(lambda actions: actions.converge(*place), f"converge {place}")
            if place[1] is not None:
                self.mended.add(place[0])

    def _mark(self) -> None:
        """A user says that one resource or several of a stack are unhealthy, perhaps for a while; or well again."""
        resting = self.rng.random() < 0.9
        chosen = (row for row in self.rows() if not resting or row.status == Status.COMPLETE)
        rows = sorted((row.stack_id, row.name, row.handle) for row in chosen)
        if not rows:
            return
        stack_id = self.rng.choice(rows)[0]
        mine = [name for id, name, _ in rows if id == stack_id] + [handle for id, _, handle in rows if id == stack_id]
        targets = [self.rng.choice(mine) for _ in range(self.rng.choice((1, 1, 1, 3)))]
        request = MarkRequest(self.rng.random() < 0.8, "by hand", lasts_s=self.rng.choice((None, None, 1.0, 30.0)))
        places = {f"resources[{place}]": target for place, target in enumerate(targets) if target}
        alive = [api for api in self.apis if api.alive]
        if alive and places:
            api = self.rng.choice(alive)

            def serve(_: StackService) -> None:
                api.marks.mark(stack_id, request, places)

            api.requests.append(serve)
            self.note(f"user: mark {targets} of {stack_id[:6]}: {request}")

    def _resting(self) -> str | None:
        """A stack of which nothing goes on, if there is one, mostly."""
        busy = {stack.root_id for stack in self.all_stacks() if stack.deleted_at is not None or _goes_on(stack)}
        found = sorted(self._desired.keys() - busy)
        return self.rng.choice(found) if found and self.rng.random() < 0.9 else self._stack()

    def _maintain(self) -> None:
        stack_id, suspends = self._resting(), self.rng.random() < 0.5
        if stack_id is not None:
            action = Action.SUSPEND if suspends else Action.RESUME
            self.act_on(lambda actions: actions.begin(stack_id, action), f"{action.lower()} {stack_id[:6]}")

    def _lock_stack(self) -> None:
        """Perhaps for a while."""
        stack_id, level = self._resting(), self.rng.choice(("all", "all", "stacks"))
        ends = self.rng.choice((None, None, self.clock.time + 30.0))
        lock = {"level": level, "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": ends}
        if stack_id is not None:
            self.act_on(lambda each: each.lock(stack_id, lock, lambda _: True), f"lock {stack_id[:6]} {level} {ends}")

    def _unlock_stack(self) -> None:
        stack_id = self._resting()
        if stack_id is not None:
            self.act_on(lambda actions: actions.unlock(stack_id, lambda _: True), f"unlock {stack_id[:6]}")

    def _check(self) -> None:
        stack_id = self._stack()
        if stack_id is not None:
            self.act_on(lambda actions: actions.begin(stack_id, Action.CHECK), f"check {stack_id[:6]}")

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
        self.act_on(lambda actions: actions.switch(stack_id, switches), f"switch {stack_id[:6]} {switches}")

    def _stack(self) -> str | None:
        return self.rng.choice(sorted(self._desired)) if self._desired else None

    def _snapshot(self) -> None:
        """Take a snapshot of a stack, go back to one, or be rid of one."""
        stack_id, keeper = self._stack(), self._keeper
        if stack_id is None or keeper is None:
            return
        table = schema.snapshot
        with self.db.read() as tx:
            chosen = select(table.c.id, table.c.stack_id, table.c.status).where(table.c.status != Status.IN_PROGRESS)
            stored = list(tx.execute(chosen.order_by(table.c.id)))
        act, id = "take", ""
        complete = [each for each in self.all_stacks() if each.status == Status.COMPLETE and each.deleted_at is None]
        resting = sorted({each.id for each in complete} & self._desired.keys())
        if resting:
            stack_id = keeper.choice(resting)
        if stored and keeper.random() < 0.6:
            id, stack_id, status = keeper.choice(stored)
            act = keeper.choice(("restore", "restore", "delete")) if status == Status.COMPLETE else "delete"
        self.keep(act, stack_id, id, keeper)

    def keep(self, act: str, stack_id: str, id: str, rng: random.Random) -> None:
        """Ask for a snapshot to be taken, restored or deleted. rng — chooses the process that is asked."""
        alive = [api for api in self.apis if api.alive]
        if not alive:
            return
        api = rng.choice(alive)

        def serve(_: StackService) -> None:
            if act == "take":
                api.snapshots.take(stack_id, None)
            elif act == "delete":
                api.snapshots.delete(stack_id, id)
            else:
                api.snapshots.restore(stack_id, id)
                self.restored += 1

        api.requests.append(serve)
        self.note(f"user: {act} snapshot {id[:6]} of {stack_id[:6]}")

    def _purge(self) -> None:
        api = self.rng.choice(self.apis)
        api.purge(self.rng.choice((0.0, 60.0)), self.rng.choice((5, 1000)))
