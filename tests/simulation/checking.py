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
from homeostat.store.database import Transaction
from homeostat.store.shards import health
from tests.simulation.actors import Api
from tests.simulation.disturbances import Disturbances
from tests.simulation.health_evidence import CheckedCloud
from tests.simulation.health_faults import HealthFaults, PlaceFaults, weather_of
from tests.simulation.health_keeping import NETWORK, preserving
from tests.simulation.health_policies import Spec, amended, prescribed, recovers_all, sees, with_urls
from tests.simulation.health_rows import Member, read
from tests.simulation.parts import Act, Part
from tests.simulation.places import asks_urls, places_of, with_places
from tests.simulation.taking import Takers
from tests.simulation.templates import GROUP
from tests.simulation.watched_groups import NODES, WatchedGroup
from tests.simulation.world import World

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


class PolicyUsers(Part):
    """Users of groups for which health policies hold, who interfere with recoveries.

    Takes: rng — of the world's nature; more — of what came later to these worlds: places, and what is to be kept.
    """

    def __init__(self, rng: random.Random, more: random.Random) -> None:
        self._nature, self._dice = rng, more
        self._groups: list[WatchedGroup] = []  # but for those that were deleted
        self._created = self._sources = 0
        self._ends_now = False
        self._agreed: set[str] = set()
        self._beats = rng.random() < 0.5
        self.preserves = more.random() < 0.4

    def begin(self) -> None:
        self._faults = self.world.part(HealthFaults)
        often: list[tuple[float, Act]] = [
            *((0.7, self._scale), (0.7, self._change), (0.1, self._delete), (0.5, self._check), (0.3, self._switch)),
            *((1.0, self._attach), (0.5, self._detach), (0.5, self._toggle), (0.7, self._mark), (1.0, self._approve)),
            *((0.4, self._lock), (0.4, self._unlock), (0.4, self._suspend), (0.4, self._resume)),
        ]
        self.world.acts += [(weight * self._nature.choice((0, 1, 1, 3)), act) for weight, act in often]
        if self._nature.random() < 0.3:
            self.world.add_api()

    # -- happening ---------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        for _ in range(self.rng.choice((2, 2, 3))):
            self._create()
        for _ in range(MADE_WITHIN):
            if self._are_made():
                break
            self._go_on()
        for _ in range(STEPS):
            if self.rng.random() < FAULT_RATE:
                self.world.act()
            self.world.end_outages()
            if self.rng.random() < FOLLOWED:
                self.world.replace_dead()
            self._go_on()

    def _are_made(self) -> bool:
        return all(each.stack_id for each in self._groups) and not any(
            each.status == Status.IN_PROGRESS for each in self.world.all_stacks()
        )

    def _go_on(self) -> None:
        if not self.world.step():
            self.world.pass_time()
        if self._beats and self.rng.random() < 0.2:
            self.world.part(Disturbances).beat()
        self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1, 0.5))

    # -- stacks ------------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        rng = self.rng
        kind = rng.choice((NodeGroup.name, NodeGroup.name, GROUP))
        group = WatchedGroup(self._created, kind, rng.randint(2, 6), converges=kind == GROUP and rng.random() < 0.5)
        group.network = NETWORK if self.preserves and self._dice.random() < 0.7 else ""
        self._created += 1
        self._groups.append(group)
        spec = self._prescribed() if rng.random() < 0.85 else None

        def create(api: Api) -> None:
            group.stack_id = api.stack_service.create("p", None, f"s{group.number}", group.request())
            self.world.mended.add(group.stack_id)

        self._request(create, f"create s{group.number}: {group}")
        if not group.converges:
            off = ConvergenceSettings(exceptions={NODES: {"converge": False}})
            self._request(lambda api: api.actions.switch(group.stack_id, off), f"leave s{group.number} alone")
        if spec is not None:
            self._put(group, spec)

    def _request(self, act: Callable[[Api], object], story: str) -> None:
        """Served in order: by the first process that is there."""
        if self.world.serving:
            self.world.serving[0].requests.append(act)
            self.note(f"user: {story}")

    def _watched(self) -> WatchedGroup | None:
        """Mostly one of which members are unhealthy."""
        there = [each for each in self._groups if each.stack_id]
        sick = {each.stack_id for each in self._faults.invariants.sick()}
        ailing = [each for each in there if self._group(each) in sick]
        chosen = ailing if ailing and self.rng.random() < 0.7 else there
        return self.rng.choice(chosen) if chosen else None

    def _group(self, group: WatchedGroup) -> str:
        """Id of the stack of its members; "" if there is none."""
        found = (each.handle for each in self.world.rows() if each.stack_id == group.stack_id and each.name == NODES)
        return next(found, "")

    def _watched_of(self, stack_id: str) -> WatchedGroup | None:
        return next((each for each in self._groups if self._group(each) == stack_id), None)

    def changes(self, row: Member) -> bool:
        group, properties = self._watched_of(row.stack_id), read(row.properties)
        kept = {name: properties[name] for name in ("flavor", "key_name") if name in properties}
        return group is None or kept != group.properties  # one that is being deleted may have been changed before

    def wants(self, row: Member) -> bool:
        group = self._watched_of(row.stack_id)
        return group is None or int(row.name) < group.count

    def _update(self, group: WatchedGroup, story: str, **changes: int) -> None:
        def update(api: Api) -> None:
            before = {name: getattr(group, name) for name in changes}
            for name, value in changes.items():
                setattr(group, name, value)
            try:
                api.stack_service.update(group.stack_id, group.request())
            except Rejected:
                for name, value in before.items():
                    setattr(group, name, value)
                raise
            if group not in self._groups:
                self._groups.append(group)  # its deletion has been revoked by that

        self._request(update, f"update s{group.number}: {changes}")
        self._faults.invariants.note(story)

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
        if group is not None and len(self._groups) > 1:
            self._request(lambda api: self._deleted(api, group), f"delete s{group.number}")

    def _deleted(self, api: Api, group: WatchedGroup) -> None:
        api.stack_service.delete(group.stack_id)
        if group in self._groups:
            self._groups.remove(group)
        self._faults.invariants.note("deleted in the middle")

    def _check(self) -> None:
        self._begin(Action.CHECK)

    def _suspend(self) -> None:
        self._begin(Action.SUSPEND)

    def _resume(self) -> None:
        self._begin(Action.RESUME)

    def _begin(self, action: Action) -> None:
        group = self._watched()
        if group is not None:
            self._request(
                lambda api: api.actions.begin(group.stack_id, action),
                f"{action.lower()} s{group.number}",
            )
            self._faults.invariants.note(f"{action.lower()} in the middle")

    def _lock(self) -> None:
        group, ends = self._watched(), self.rng.choice((None, self.clock.time + 30.0))
        values = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": ends}
        if group is not None:
            self._request(
                lambda api: api.actions.lock(group.stack_id, values, lambda _: True),
                f"lock s{group.number}",
            )
            self._faults.invariants.note("locked in the middle")

    def _unlock(self) -> None:
        group = self._watched()
        if group is not None:
            self._request(
                lambda api: api.actions.unlock(group.stack_id, lambda _: True),
                f"unlock s{group.number}",
            )

    def _switch(self) -> None:
        """Convergence, of a group that is no cluster."""
        group = self._watched()
        if group is not None and group.kind == GROUP:
            group.converges = not group.converges
            switches = ConvergenceSettings(exceptions={NODES: {} if group.converges else {"converge": False}})
            self._request(
                lambda api: api.actions.switch(group.stack_id, switches),
                f"switch s{group.number} {switches}",
            )

    # -- members -----------------------------------------------------------------------------------------------------

    def _member(self) -> tuple[str, str] | None:
        """Stack and name of a member, mostly of one that is unhealthy."""
        sick = sorted((each.stack_id, each.name) for each in self._faults.invariants.sick())
        groups = {self._group(each) for each in self._groups if each.stack_id}
        rows = sorted((each.stack_id, each.name) for each in self.world.rows() if each.stack_id in groups)
        chosen = sick if sick and self.rng.random() < 0.8 else rows
        return self.rng.choice(chosen) if chosen else None

    def _approve(self) -> None:
        """A user converges a member, or the whole group."""
        place = self._member()
        if place is not None:
            name = place[1] if self.rng.random() < 0.8 else None
            self._request(lambda api: api.actions.converge(place[0], name), f"converge {name} of {place[0][:6]}")
            self._faults.invariants.note("converged in the middle")

    def _mark(self) -> None:
        """A user says that a member is unhealthy, for a while or not; or that it is well."""
        place = self._member()
        if place is not None and self.world.apis[0].alive:
            stack_id, name = place
            request = MarkRequest(self.rng.random() < 0.7, "by hand", lasts_s=self.rng.choice((None, 5.0, 30.0)))
            story = f"mark {name} of {stack_id[:6]} {request}"
            self._request(lambda api: api.marks.mark(stack_id, request, {"": name}), story)
            self._faults.invariants.note("marked by a user in the middle")

    # -- policies ----------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Another policy takes the place of the one that holds."""
        group = self._watched()
        if group is not None:
            self._put(group, self._prescribed())
            self._faults.invariants.note("another policy in the middle")

    def _prescribed(self) -> Spec:
        """Any policy that makes sense in this world."""
        spec = prescribed(self.rng)
        if len(self._faults.places) > 1 and self._dice.random() < 0.8:
            spec = with_places(with_urls(spec, self._dice), self._dice, self._faults.places)
        return preserving(spec, self._dice) if self.preserves else spec

    def move_places(self) -> None:
        """The policy that holds is asked from other places from now on, or others count more."""
        group = self._watched()
        if group is not None and group.spec is not None and asks_urls(group.spec):
            self._put(group, with_places(group.spec, self._dice, self._faults.places))
            self._faults.invariants.note("other places in the middle")

    def _put(self, group: WatchedGroup, spec: Spec) -> None:
        """In one transaction or two, as clients do."""
        self._sources += 1
        source, at_once = f"policy{self._sources}", self.rng.random() < 0.3

        db = self.world.apis[0].db

        def put(_: Api) -> None:
            if at_once:
                with db.write() as tx:
                    self._take_away(tx, group)
                    self._bind(tx, group, source, spec)
                return
            with db.write() as tx:
                self._take_away(tx, group)
            with db.write() as tx:
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
        group, db = self._watched(), self.world.apis[0].db
        if group is None:
            return

        def detach(_: Api) -> None:
            with db.write() as tx:
                self._take_away(tx, group)
            if not self._ends_now:
                group.spec = None

        self._request(detach, f"detach from s{group.number}")
        self._faults.invariants.note("detached in the middle")

    def _toggle(self) -> None:
        """A policy is switched off, or on again."""
        group, db = self._watched(), self.world.apis[0].db
        if group is None:
            return

        def toggle(_: Api) -> None:
            if self._ends_now:
                return
            with db.write() as tx:
                health.switch(tx, group.source, enabled=not group.enabled, now=tx.now())
            group.enabled = not group.enabled

        self._request(toggle, f"switch the policy of s{group.number}")
        self._faults.invariants.note("switched in the middle")

    # -- rest --------------------------------------------------------------------------------------------------------

    def calmed(self) -> None:
        # Each fence of each recovery would take minutes, one after the other.
        cloud = self._faults.cloud
        cloud.behaviour = replace(cloud.behaviour, faults=replace(cloud.behaviour.faults, fence=0.0))
        for handle in cloud.things():
            cloud.change(handle, locked=False)
        for api in self.world.apis:
            api.requests.clear()
        for group in self._groups:
            if group.stack_id:
                self._amend(group)
        self._revive()
        self._ends_now = True  # a request that is being served takes no policy away any more
        # What an action has failed with may have been recovered by a policy.
        self.world.mended.update(self._group(each) for each in self._groups if each.stack_id)

    def _amend(self, group: WatchedGroup) -> None:
        """The policy is one that recovers everything by itself; what has none is brought back by convergence."""
        group.read(self.db.raw)
        spec = group.spec
        if spec is None or group.unwatched:
            self._converge_again(group)
        elif not recovers_all(spec, self._faults.places) or self.rng.random() < CALM_SHARE:
            with self.db.write() as tx:
                self._take_away(tx, group)
                self._sources += 1
                self._bind(tx, group, f"policy{self._sources}", amended(spec, self._faults.places))
            self.note(f"amend the policy of s{group.number}")

    def _converge_again(self, group: WatchedGroup) -> None:
        group.converges = True
        try:
            StackActions(self.db, 900.0).switch(group.stack_id, ConvergenceSettings(exceptions={NODES: {}}))
        except Rejected as error:
            self.note(f"refused: {error}")

    def _is_left_alone(self, group: WatchedGroup) -> bool:
        return any(each.id == group.stack_id and NODES in (each.exceptions or {}) for each in self.world.all_stacks())

    def _revive(self) -> None:
        """People start what no policy sees, or what nothing brings back."""
        groups = {self._group(each): each for each in self._groups if each.stack_id}
        owners = {row.handle: groups.get(row.stack_id) for row in self.world.rows() if row.handle}
        for handle, server in sorted(self._faults.cloud.things("server").items()):
            group = owners.get(handle)
            spec = group.spec if group is not None and group.enabled else None
            policy = None if spec is None else stored_health_policy(spec)
            if policy is None or not sees(policy, server, host_down=False):
                self._faults.cloud.change(handle, status="active")
                self._faults.invariants.evidence.brought_back.add(handle)

    def is_moving(self) -> bool:
        return bool(self._faults.invariants.unsettled())

    def last_word(self) -> None:
        """Users unlock and resume what they may, take back what they have marked, and say that what is gone is gone."""
        self._free()
        self._agree()
        for group in self._groups:
            group.read(self.db.raw)
            if group.unwatched:
                if group.stack_id and self._is_left_alone(group):
                    self._converge_again(group)  # it may have been refused while the stack was locked
            elif group.spec is not None and not recovers_all(group.spec, self._faults.places):
                # Another one was being attached in the moment in which everything became calm.
                self._ends_now = False
                self._amend(group)
                self._ends_now = True

    def _free(self) -> None:
        for stack in self.world.all_stacks():
            tree = [each for each in self.world.all_stacks() if stack.id in (each.id, each.root_id)]
            goes_on = any(each.status == Status.IN_PROGRESS for each in tree)
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
            self._faults.cloud.things("server"),
            {self._group(each): each for each in self._groups if each.stack_id},
        )
        for row in self.world.rows():
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
        children = {each.id for each in self.world.all_stacks() if each.root_id == root.id and each.deleted_at is None}
        for row in self.world.rows():
            mark = row.marks.unhealthy if row.marks is not None else None
            if row.stack_id in children and row.replaced_by is None and mark is not None and mark.reporter != REPORTER:
                try:
                    Marks(self.db).mark(row.stack_id, MarkRequest(False), {"": row.name})
                except Rejected as error:
                    self.note(f"refused: {error}")


def checked(seed: int) -> World:
    """Return a world with health policies."""
    rng, more = random.Random(f"health {seed}"), random.Random(f"more {seed}")
    nature, places = random.Random(f"checked {seed}"), places_of(seed)
    users = PolicyUsers(nature, more)
    faults = HealthFaults(nature, places, users.changes, users.wants)
    takers = [Takers(more)] if users.preserves else []
    behaviour, workers = weather_of(rng), max(rng.randint(1, 3), len(places))
    parts: list[Part] = [Disturbances(), faults, users, *takers, PlaceFaults(more, users.move_places)]
    sizes: dict[str, Any] = {"workers": workers, "members_per_shard": rng.choice((2, 1000))}
    return World(seed, behaviour, parts, cloud_type=CheckedCloud, **sizes)
