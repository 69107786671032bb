"""The world of health policies: groups with any policy, users who interfere with recoveries, workers that die."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from homeostat.clustering.decisions.policies import stored_health_policy
from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status
from homeostat.planner.lifecycle.recovery_state import REPORTER
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.services.marks import MarkRequest, Marks
from homeostat.services.stacks import StackService
from homeostat.store.database import Transaction
from homeostat.store.shards import health
from tests.simulation.health_faults import HealthFaultWorld
from tests.simulation.health_keeping import NETWORK, preserving
from tests.simulation.health_policies import Spec, amended, prescribed, recovers_all, sees, with_urls
from tests.simulation.health_rows import Member, read
from tests.simulation.places import asks_urls, with_places
from tests.simulation.taking import Takers
from tests.simulation.templates import GROUP
from tests.simulation.watched_groups import NODES, WatchedGroup

MADE_WITHIN, STEPS = 400, 900
"""Steps in which groups are made without trouble, and those that follow."""
FAULT_RATE = 0.07
"""Chance at each step that something happens beside it."""
FOLLOWED = 0.03
"""Chance at each step that a process that has died is followed by another one."""
AGREED_S = 600.0
"""Seconds after which users say that what is gone is gone."""
CALM_SHARE = 0.5
"""Part of the policies that a user amends in the end although they would recover everything."""


class CheckedWorld(HealthFaultWorld):
    """watched_groups — its stacks with groups; those that were deleted are left out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = random.Random(f"checked {seed}")
        self.watched_groups: list[WatchedGroup] = []
        self._created = self._sources = 0
        self._ends_now = False
        self._agreed: set[str] = set()
        self._beats = rng.random() < 0.5
        often = [(weight * rng.choice((0, 1, 1, 3)), act) for weight, act in self._optional()]
        self._acts = [*self._always(), *often]
        self._more = random.Random(f"more {seed}")
        self._preserves = self._more.random() < 0.4
        if self._preserves:
            self.takers = Takers(self, self._more)
            self._acts += self.takers.acts()
        if len(self.places) > 1:
            self._acts += self._of_places()
        if rng.random() < 0.3:
            self.apis.append(self._api())

    def _always(self) -> list[tuple[float, Callable[[], None]]]:
        return [(6.0, self._ail), (2.0, self._fail_host), (2.5, self._lie), (1.0, self._kill)]

    def _optional(self) -> list[tuple[float, Callable[[], None]]]:
        return [
            *((1.5, self._flap), (1.0, self._ail_many), (1.0, self._cut_observers_off), (0.5, self._hide_hosts)),
            *((0.3, self._lose_half), (0.7, self._pause_control_plane), (0.4, self._fill_hosts)),
            *((1.0, self._doubt_fences), (0.7, self._black_out), (0.5, self._limit_rate), (0.5, self._hide)),
            *((1.0, self._kill), (0.7, self._die_inside), (0.7, self._make_flaky), (0.5, self._cut_off)),
            *((1.0, self._freeze), (0.5, self._jump_ahead), (0.5, self._set_clock), (0.5, self._wake_twice)),
            *((0.7, self._scale), (0.7, self._change), (0.1, self._delete), (0.5, self._check), (0.3, self._switch)),
            *((1.0, self._attach), (0.5, self._detach), (0.5, self._toggle), (0.7, self._mark), (1.0, self._approve)),
            *((0.4, self._lock), (0.4, self._unlock), (0.4, self._suspend), (0.4, self._resume)),
        ]

    def _of_places(self) -> list[tuple[float, Callable[[], None]]]:
        """Of worlds in which URLs are asked from several places."""
        often = ((2.0, self._cut_place_off), (1.5, self._desert), (2.5, self._disagree), (1.0, self._move_places))
        return [(weight * self._more.choice((0, 1, 1, 2)), act) for weight, act in often]

    # -- happening ---------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        for _ in range(self.rng.choice((2, 2, 3))):
            self._create()
        for _ in range(MADE_WITHIN):
            if self._are_made():
                break
            self._go_on()
        weights = [weight for weight, _ in self._acts]
        for _ in range(STEPS):
            if self.rng.random() < FAULT_RATE:
                (act,) = self.rng.choices([act for _, act in self._acts], weights)
                act()
            self._end_outages()
            if self.rng.random() < FOLLOWED:
                self.replace_dead()
            self._go_on()

    def _are_made(self) -> bool:
        return all(each.stack_id for each in self.watched_groups) and not any(
            each.status == Status.IN_PROGRESS for each in self.all_stacks()
        )

    def _go_on(self) -> None:
        if not self.step():
            self._pass_time()
        if self._beats and self.rng.random() < 0.2:
            self._beat()
        self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1, 0.5))

    def _kill(self) -> None:
        super()._kill()
        self.invariants.note("killed in the middle")

    def _freeze(self) -> None:
        super()._freeze()
        self.invariants.note("frozen in the middle")

    # -- stacks ------------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        rng = self.rng
        kind = rng.choice((NodeGroup.name, NodeGroup.name, GROUP))
        group = WatchedGroup(self._created, kind, rng.randint(2, 6), converges=kind == GROUP and rng.random() < 0.5)
        group.network = NETWORK if self._preserves and self._more.random() < 0.7 else ""
        self._created += 1
        self.watched_groups.append(group)
        spec = self._prescribed() if rng.random() < 0.85 else None

        def create(stack_service: StackService) -> None:
            group.stack_id = stack_service.create("p", None, f"s{group.number}", group.request())
            self.mended.add(group.stack_id)

        self._request(create, f"create s{group.number}: {group}")
        if not group.converges:
            off = ConvergenceSettings(exceptions={NODES: {"converge": False}})
            self._act_on(lambda actions: actions.switch(group.stack_id, off), f"leave s{group.number} alone")
        if spec is not None:
            self._put(group, spec)

    def _request(self, request: Callable[[StackService], object], story: str) -> None:
        """Served in order: by the first process that is there."""
        alive = [api for api in self.apis if api.alive]
        if alive:
            alive[0].requests.append(request)
            self.note(f"user: {story}")

    def _act_on(self, act: Callable[[StackActions], object], story: str) -> None:
        alive = [api for api in self.apis if api.alive]
        if alive:
            api = alive[0]
            self._request(lambda _: act(api.actions), story)

    def _watched(self) -> WatchedGroup | None:
        """Mostly one of which members are unhealthy."""
        there = [each for each in self.watched_groups if each.stack_id]
        sick = {each.stack_id for each in self.invariants.sick()}
        ailing = [each for each in there if self.group(each) in sick]
        chosen = ailing if ailing and self.rng.random() < 0.7 else there
        return self.rng.choice(chosen) if chosen else None

    def group(self, group: WatchedGroup) -> str:
        """Id of the stack of its members; "" if there is none."""
        found = (each.handle for each in self.rows() if each.stack_id == group.stack_id and each.name == NODES)
        return next(found, "")

    def watched_of(self, stack_id: str) -> WatchedGroup | None:
        return next((each for each in self.watched_groups if self.group(each) == stack_id), None)

    def changes(self, row: Member) -> bool:
        group, properties = self.watched_of(row.stack_id), read(row.properties)
        kept = {name: properties[name] for name in ("flavor", "key_name") if name in properties}
        return group is None or kept != group.properties  # one that is being deleted may have been changed before

    def wants(self, row: Member) -> bool:
        group = self.watched_of(row.stack_id)
        return group is None or int(row.name) < group.count

    def _update(self, group: WatchedGroup, story: str, **changes: int) -> None:
        def update(stack_service: StackService) -> None:
            before = {name: getattr(group, name) for name in changes}
            for name, value in changes.items():
                setattr(group, name, value)
            try:
                stack_service.update(group.stack_id, group.request())
            except Rejected:
                for name, value in before.items():
                    setattr(group, name, value)
                raise
            if group not in self.watched_groups:
                self.watched_groups.append(group)  # its deletion has been revoked by that

        self._request(update, f"update s{group.number}: {changes}")
        self.invariants.note(story)

    def _scale(self) -> None:
        group = self._watched()
        if group is not None:
            self._update(group, "scaled in the middle", count=self.rng.randint(1, 6))

    def _change(self) -> None:
        group = self._watched()
        if group is not None:
            name = self.rng.choice(("flavor", "key"))
            self._update(group, "changed in the middle", **{name: self.rng.randrange(1, 4)})

    def _delete(self) -> None:
        group = self._watched()
        if group is not None and len(self.watched_groups) > 1:
            self._request(lambda stack_service: self._deleted(stack_service, group), f"delete s{group.number}")

    def _deleted(self, stack_service: StackService, group: WatchedGroup) -> None:
        stack_service.delete(group.stack_id)
        if group in self.watched_groups:
            self.watched_groups.remove(group)
        self.invariants.note("deleted in the middle")

    def _check(self) -> None:
        self._begin(Action.CHECK)

    def _suspend(self) -> None:
        self._begin(Action.SUSPEND)

    def _resume(self) -> None:
        self._begin(Action.RESUME)

    def _begin(self, action: Action) -> None:
        group = self._watched()
        if group is not None:
            self._act_on(
                lambda actions: actions.begin(group.stack_id, action),
                f"{action.lower()} s{group.number}",
            )
            self.invariants.note(f"{action.lower()} in the middle")

    def _lock(self) -> None:
        group, ends = self._watched(), self.rng.choice((None, self.clock.time + 30.0))
        values = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": ends}
        if group is not None:
            self._act_on(
                lambda actions: actions.lock(group.stack_id, values, lambda _: True),
                f"lock s{group.number}",
            )
            self.invariants.note("locked in the middle")

    def _unlock(self) -> None:
        group = self._watched()
        if group is not None:
            self._act_on(
                lambda actions: actions.unlock(group.stack_id, lambda _: True),
                f"unlock s{group.number}",
            )

    def _switch(self) -> None:
        """Convergence, of a group that is no cluster."""
        group = self._watched()
        if group is not None and group.kind == GROUP:
            group.converges = not group.converges
            switches = ConvergenceSettings(exceptions={NODES: {} if group.converges else {"converge": False}})
            self._act_on(
                lambda actions: actions.switch(group.stack_id, switches),
                f"switch s{group.number} {switches}",
            )

    # -- members -----------------------------------------------------------------------------------------------------

    def _member(self) -> tuple[str, str] | None:
        """Stack and name of a member, mostly of one that is unhealthy."""
        sick = sorted((each.stack_id, each.name) for each in self.invariants.sick())
        groups = {self.group(each) for each in self.watched_groups if each.stack_id}
        rows = sorted((each.stack_id, each.name) for each in self.rows() if each.stack_id in groups)
        chosen = sick if sick and self.rng.random() < 0.8 else rows
        return self.rng.choice(chosen) if chosen else None

    def _approve(self) -> None:
        """A user converges a member, or the whole group."""
        place = self._member()
        if place is not None:
            name = place[1] if self.rng.random() < 0.8 else None
            self._act_on(lambda actions: actions.converge(place[0], name), f"converge {name} of {place[0][:6]}")
            self.invariants.note("converged in the middle")

    def _mark(self) -> None:
        """A user says that a member is unhealthy, for a while or not; or that it is well."""
        place, api = self._member(), self.apis[0]
        if place is not None and api.alive:
            stack_id, name = place
            request = MarkRequest(self.rng.random() < 0.7, "by hand", lasts_s=self.rng.choice((None, 5.0, 30.0)))
            story = f"mark {name} of {stack_id[:6]} {request}"
            self._request(lambda _: api.marks.mark(stack_id, request, {"": name}), story)
            self.invariants.note("marked by a user in the middle")

    # -- policies ----------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Another policy takes the place of the one that holds."""
        group = self._watched()
        if group is not None:
            self._put(group, self._prescribed())
            self.invariants.note("another policy in the middle")

    def _prescribed(self) -> Spec:
        """Any policy that makes sense in this world."""
        spec = prescribed(self.rng)
        if len(self.places) > 1 and self._more.random() < 0.8:
            spec = with_places(with_urls(spec, self._more), self._more, self.places)
        return preserving(spec, self._more) if self._preserves else spec

    def _move_places(self) -> None:
        """The policy that holds is asked from other places from now on, or others count more."""
        group = self._watched()
        if group is not None and group.spec is not None and asks_urls(group.spec):
            self._put(group, with_places(group.spec, self._more, self.places))
            self.invariants.note("other places in the middle")

    def _put(self, group: WatchedGroup, spec: Spec) -> None:
        """In one transaction or two, as clients do."""
        self._sources += 1
        source, at_once = f"policy{self._sources}", self.rng.random() < 0.3
        api = self.apis[0]

        def put(_: StackService) -> None:
            if at_once:
                with api.db.write() as tx:
                    self._take_away(tx, group)
                    self._bind(tx, group, source, spec)
                return
            with api.db.write() as tx:
                self._take_away(tx, group)
            with api.db.write() as tx:
                self._bind(tx, group, source, spec)

        self._request(put, f"attach to s{group.number} {source}: {spec['properties']}")

    def _take_away(self, tx: Transaction, group: WatchedGroup) -> None:
        if not self._ends_now:
            health.detach(tx, group.source, tx.now())

    def _bind(self, tx: Transaction, group: WatchedGroup, source: str, spec: Spec, *, enabled: bool = True) -> None:
        """As for a cluster: the policy holds for the members of its group."""
        if not self._ends_now:
            group.bind(tx, source, spec, tx.now(), enabled=enabled)

    def _detach(self) -> None:
        group, api = self._watched(), self.apis[0]
        if group is None:
            return

        def detach(_: StackService) -> None:
            with api.db.write() as tx:
                self._take_away(tx, group)
            if not self._ends_now:
                group.spec = None

        self._request(detach, f"detach from s{group.number}")
        self.invariants.note("detached in the middle")

    def _toggle(self) -> None:
        """A policy is switched off, or on again."""
        group, api = self._watched(), self.apis[0]
        if group is None:
            return

        def toggle(_: StackService) -> None:
            if self._ends_now:
                return
            with api.db.write() as tx:
                health.switch(tx, group.source, enabled=not group.enabled, now=tx.now())
            group.enabled = not group.enabled

        self._request(toggle, f"switch the policy of s{group.number}")
        self.invariants.note("switched in the middle")

    # -- rest --------------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        super().calm()
        self.end_trouble()
        # Each fence of each recovery would take minutes, one after the other.
        self.cloud.behaviour = replace(self.cloud.behaviour, faults=replace(self.cloud.behaviour.faults, fence=0.0))
        for handle in self.cloud.things():
            self.cloud.change(handle, locked=False)
        for api in self.apis:
            api.requests.clear()
        for group in self.watched_groups:
            if group.stack_id:
                self._amend(group)
        self._revive()
        self._ends_now = True  # a request that is being served takes no policy away any more

    def _amend(self, group: WatchedGroup) -> None:
        """The policy is one that recovers everything by itself; what has none is brought back by convergence."""
        group.read(self.db.raw)
        spec = group.spec
        if spec is None or group.unwatched:
            self._converge_again(group)
        elif not recovers_all(spec, self.places) or self.rng.random() < CALM_SHARE:
            with self.db.write() as tx:
                self._take_away(tx, group)
                self._sources += 1
                self._bind(tx, group, f"policy{self._sources}", amended(spec, self.places))
            self.note(f"amend the policy of s{group.number}")

    def _converge_again(self, group: WatchedGroup) -> None:
        group.converges = True
        try:
            StackActions(self.db, 900.0).switch(group.stack_id, ConvergenceSettings(exceptions={NODES: {}}))
        except Rejected as error:
            self.note(f"refused: {error}")

    def _is_left_alone(self, group: WatchedGroup) -> bool:
        return any(each.id == group.stack_id and NODES in (each.exceptions or {}) for each in self.all_stacks())

    def _revive(self) -> None:
        """People start what no policy sees, or what nothing brings back."""
        groups = {self.group(each): each for each in self.watched_groups if each.stack_id}
        owners = {row.handle: groups.get(row.stack_id) for row in self.rows() if row.handle}
        for handle, server in sorted(self.cloud.things("server").items()):
            group = owners.get(handle)
            spec = group.spec if group is not None and group.enabled else None
            policy = None if spec is None else stored_health_policy(spec)
            if policy is None or not sees(policy, server, host_down=False):
                self.cloud.change(handle, status="active")
                self.invariants.evidence.brought_back.add(handle)

    def _moving(self) -> bool:
        return super()._moving() or bool(self.invariants.unsettled())

    def _jump(self, rested_at: float | None) -> None:
        """Users unlock and resume what they may, take back what they have marked, and say that what is gone is gone."""
        self._free()
        self._agree()
        for group in self.watched_groups:
            group.read(self.db.raw)
            if group.stack_id and group.unwatched and self._is_left_alone(group):
                self._converge_again(group)  # it may have been refused while the stack was locked
            elif group.spec is not None and not recovers_all(group.spec, self.places):
                # Another one was being attached in the moment in which everything became calm.
                self._ends_now = False
                self._amend(group)
                self._ends_now = True
        super()._jump(rested_at)

    def _free(self) -> None:
        for stack in self.all_stacks():
            goes_on = any(
                each.status == Status.IN_PROGRESS for each in self.all_stacks() if stack.id in (each.id, each.root_id)
            )
            if stack.deleted_at is not None or stack.parent_id is not None or goes_on:
                continue
            actions = StackActions(self.db, 900.0)
            if stack.lock is not None:
                self.note(f"unlock {stack.name} at last")
                actions.unlock(stack.id, lambda _: True)
            elif stack.suspended:
                self.note(f"resume {stack.name} at last")
                actions.begin(stack.id, Action.RESUME)
            else:
                self._unmark(stack)

    def _agree(self) -> None:
        """Everything of a kind is gone at once: the service believes that when users say so."""
        there, groups = (
            self.cloud.things("server"),
            {self.group(each): each for each in self.watched_groups if each.stack_id},
        )
        for row in self.rows():
            stands = row.stack_id in groups and row.replaced_by is None
            stands = stands and (row.status == Status.FAILED or groups[row.stack_id].unwatched)
            if not stands or row.handle in ("", *there) or row.handle in self._agreed:
                continue
            if row.updated_at < self.clock.time - AGREED_S:
                self.note(f"converge {row.name} of {row.stack_id[:6]} at last")
                try:
                    StackActions(self.db, 900.0).converge(row.stack_id, row.name)
                    self._agreed.add(row.handle)
                except Rejected as error:
                    self.note(f"refused: {error}")

    def _unmark(self, root: Any) -> None:
        children = {each.id for each in self.all_stacks() if each.root_id == root.id and each.deleted_at is None}
        for row in self.rows():
            mark = row.marks.unhealthy if row.marks is not None else None
            if row.stack_id in children and row.replaced_by is None and mark is not None and mark.reporter != REPORTER:
                try:
                    Marks(self.db).mark(row.stack_id, MarkRequest(False), {"": row.name})
                except Rejected as error:
                    self.note(f"refused: {error}")

    def settle(self, within_s: float = 7200.0) -> None:
        # What an action has failed with may have been recovered by a policy.
        self.mended.update(self.group(each) for each in self.watched_groups if each.stack_id)
        super().settle(within_s)
        self.invariants.check_rest(self.cloud)
