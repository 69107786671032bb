"""The world of health policies: groups with any policy, users who interfere with recoveries, workers that die."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from homeostat.api.services.actions import ConvergenceSettings, StackActions
from homeostat.api.services.marks import MarkRequest, Marks
from homeostat.api.services.stacks import StackService
from homeostat.convergence.health_facts import policy_of
from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status
from homeostat.planner.lifecycle.recovery_state import REPORTER
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.store.shards import health
from tests.simulation.ailing import AilingWorld
from tests.simulation.health_keeping import NETWORK, preserving
from tests.simulation.health_policies import Spec, amended, prescribed, recovers_all, sees, with_urls
from tests.simulation.health_rows import Member, read
from tests.simulation.places import asks_urls, with_places
from tests.simulation.taking import Takers
from tests.simulation.templates import GROUP
from tests.simulation.wards import NODES, Ward

MADE_WITHIN, STEPS = 400, 900
"""Steps in which groups are made without trouble, and those that follow."""
HASTE = 0.07
"""Chance at each step that something happens beside it."""
FOLLOWED = 0.03
"""Chance at each step that a process that has died is followed by another one."""
AGREED_S = 600.0
"""Seconds after which users say that what is gone is gone."""
CALM_SHARE = 0.5
"""Part of the policies that a user amends in the end although they would recover everything."""


class CheckedWorld(AilingWorld):
    """wards — its stacks with groups; those that were deleted are left out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = random.Random(f"checked {seed}")
        self.wards: list[Ward] = []
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

    def happen(self) -> None:
        for _ in range(self.rng.choice((2, 2, 3))):
            self._create()
        for _ in range(MADE_WITHIN):
            if self._are_made():
                break
            self._go_on()
        weights = [weight for weight, _ in self._acts]
        for _ in range(STEPS):
            if self.rng.random() < HASTE:
                (act,) = self.rng.choices([act for _, act in self._acts], weights)
                act()
            self._end_outages()
            if self.rng.random() < FOLLOWED:
                self.replace_dead()
            self._go_on()

    def _are_made(self) -> bool:
        return all(each.stack_id for each in self.wards) and not any(
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
        self.laws.note("killed in the middle")

    def _freeze(self) -> None:
        super()._freeze()
        self.laws.note("frozen in the middle")

    # -- stacks ------------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        rng = self.rng
        kind = rng.choice((NodeGroup.name, NodeGroup.name, GROUP))
        ward = Ward(self._created, kind, rng.randint(2, 6), converges=kind == GROUP and rng.random() < 0.5)
        ward.network = NETWORK if self._preserves and self._more.random() < 0.7 else ""
        self._created += 1
        self.wards.append(ward)
        spec = self._prescribed() if rng.random() < 0.85 else None

        def create(stack_service: StackService) -> None:
            ward.stack_id = stack_service.create("p", None, f"s{ward.number}", ward.request())
            self.mended.add(ward.stack_id)

        self._request(create, f"create s{ward.number}: {ward}")
        if not ward.converges:
            off = ConvergenceSettings(exceptions={NODES: {"converge": False}})
            self._act_on(lambda actions: actions.switch(ward.stack_id, off), f"leave s{ward.number} alone")
        if spec is not None:
            self._put(ward, spec)

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

    def _ward(self) -> Ward | None:
        """Mostly one of which members are unhealthy."""
        there = [each for each in self.wards if each.stack_id]
        sick = {each.stack_id for each in self.laws.sick()}
        ailing = [each for each in there if self.group(each) in sick]
        chosen = ailing if ailing and self.rng.random() < 0.7 else there
        return self.rng.choice(chosen) if chosen else None

    def group(self, ward: Ward) -> str:
        """Id of the stack of its members; "" if there is none."""
        found = (each.handle for each in self.rows() if each.stack_id == ward.stack_id and each.name == NODES)
        return next(found, "")

    def ward_of(self, stack_id: str) -> Ward | None:
        return next((each for each in self.wards if self.group(each) == stack_id), None)

    def changes(self, row: Member) -> bool:
        ward, properties = self.ward_of(row.stack_id), read(row.properties)
        kept = {name: properties[name] for name in ("flavor", "key_name") if name in properties}
        return ward is None or kept != ward.properties  # one that is being deleted may have been changed before

    def wants(self, row: Member) -> bool:
        ward = self.ward_of(row.stack_id)
        return ward is None or int(row.name) < ward.count

    def _update(self, ward: Ward, story: str, **changes: int) -> None:
        def update(stack_service: StackService) -> None:
            before = {name: getattr(ward, name) for name in changes}
            for name, value in changes.items():
                setattr(ward, name, value)
            try:
                stack_service.update(ward.stack_id, ward.request())
            except Rejected:
                for name, value in before.items():
                    setattr(ward, name, value)
                raise
            if ward not in self.wards:
                self.wards.append(ward)  # its deletion has been revoked by that

        self._request(update, f"update s{ward.number}: {changes}")
        self.laws.note(story)

    def _scale(self) -> None:
        ward = self._ward()
        if ward is not None:
            self._update(ward, "scaled in the middle", count=self.rng.randint(1, 6))

    def _change(self) -> None:
        ward = self._ward()
        if ward is not None:
            name = self.rng.choice(("flavor", "key"))
            self._update(ward, "changed in the middle", **{name: self.rng.randrange(1, 4)})

    def _delete(self) -> None:
        ward = self._ward()
        if ward is not None and len(self.wards) > 1:
            self._request(lambda stack_service: self._deleted(stack_service, ward), f"delete s{ward.number}")

    def _deleted(self, stack_service: StackService, ward: Ward) -> None:
        stack_service.delete(ward.stack_id)
        if ward in self.wards:
            self.wards.remove(ward)
        self.laws.note("deleted in the middle")

    def _check(self) -> None:
        self._begin(Action.CHECK)

    def _suspend(self) -> None:
        self._begin(Action.SUSPEND)

    def _resume(self) -> None:
        self._begin(Action.RESUME)

    def _begin(self, action: Action) -> None:
        ward = self._ward()
        if ward is not None:
            self._act_on(lambda actions: actions.begin(ward.stack_id, action), f"{action.lower()} s{ward.number}")
            self.laws.note(f"{action.lower()} in the middle")

    def _lock(self) -> None:
        ward, ends = self._ward(), self.rng.choice((None, self.clock.time + 30.0))
        values = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": ends}
        if ward is not None:
            self._act_on(lambda actions: actions.lock(ward.stack_id, values, lambda _: True), f"lock s{ward.number}")
            self.laws.note("locked in the middle")

    def _unlock(self) -> None:
        ward = self._ward()
        if ward is not None:
            self._act_on(lambda actions: actions.unlock(ward.stack_id, lambda _: True), f"unlock s{ward.number}")

    def _switch(self) -> None:
        """Convergence, of a group that is no cluster."""
        ward = self._ward()
        if ward is not None and ward.kind == GROUP:
            ward.converges = not ward.converges
            switches = ConvergenceSettings(exceptions={NODES: {} if ward.converges else {"converge": False}})
            self._act_on(lambda actions: actions.switch(ward.stack_id, switches), f"switch s{ward.number} {switches}")

    # -- members -----------------------------------------------------------------------------------------------------

    def _member(self) -> tuple[str, str] | None:
        """Stack and name of a member, mostly of one that is unhealthy."""
        sick = sorted((each.stack_id, each.name) for each in self.laws.sick())
        groups = {self.group(each) for each in self.wards if each.stack_id}
        rows = sorted((each.stack_id, each.name) for each in self.rows() if each.stack_id in groups)
        chosen = sick if sick and self.rng.random() < 0.8 else rows
        return self.rng.choice(chosen) if chosen else None

    def _approve(self) -> None:
        """A user converges a member, or the whole group."""
        place = self._member()
        if place is not None:
            name = place[1] if self.rng.random() < 0.8 else None
            self._act_on(lambda actions: actions.converge(place[0], name), f"converge {name} of {place[0][:6]}")
            self.laws.note("converged in the middle")

    def _mark(self) -> None:
        """A user says that a member is unhealthy, for a while or not; or that it is well."""
        place, api = self._member(), self.apis[0]
        if place is not None and api.alive:
            stack_id, name = place
            request = MarkRequest(self.rng.random() < 0.7, "by hand", lasts_s=self.rng.choice((None, 5.0, 30.0)))
            story = f"mark {name} of {stack_id[:6]} {request}"
            self._request(lambda _: api.marks.mark(stack_id, request, {"": name}), story)
            self.laws.note("marked by a user in the middle")

    # -- policies ----------------------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Another policy takes the place of the one that holds."""
        ward = self._ward()
        if ward is not None:
            self._put(ward, self._prescribed())
            self.laws.note("another policy in the middle")

    def _prescribed(self) -> Spec:
        """Any policy that makes sense in this world."""
        spec = prescribed(self.rng)
        if len(self.places) > 1 and self._more.random() < 0.8:
            spec = with_places(with_urls(spec, self._more), self._more, self.places)
        return preserving(spec, self._more) if self._preserves else spec

    def _move_places(self) -> None:
        """The policy that holds is asked from other places from now on, or others count more."""
        ward = self._ward()
        if ward is not None and ward.spec is not None and asks_urls(ward.spec):
            self._put(ward, with_places(ward.spec, self._more, self.places))
            self.laws.note("other places in the middle")

    def _put(self, ward: Ward, spec: Spec) -> None:
        """In one transaction or two, as clients do."""
        self._sources += 1
        source, at_once = f"policy{self._sources}", self.rng.random() < 0.3
        api = self.apis[0]

        def put(_: StackService) -> None:
            if at_once:
                with api.db.write() as tx:
                    self._take_away(tx, ward)
                    self._bind(tx, ward, source, spec)
                return
            with api.db.write() as tx:
                self._take_away(tx, ward)
            with api.db.write() as tx:
                self._bind(tx, ward, source, spec)

        self._request(put, f"attach to s{ward.number} {source}: {spec['properties']}")

    def _take_away(self, tx: Connection, ward: Ward) -> None:
        if not self._ends_now:
            health.detach(tx, ward.source, self.db.now_of(tx))

    def _bind(self, tx: Connection, ward: Ward, source: str, spec: Spec, *, enabled: bool = True) -> None:
        """As for a cluster: the policy holds for the members of its group."""
        gone = tx.exec_driver_sql("SELECT 1 FROM stack WHERE id = ? AND deleted_at IS NULL", (ward.stack_id,))
        bound = tx.exec_driver_sql("SELECT 1 FROM health_check WHERE stack_id = ?", (ward.stack_id,))
        if gone.first() is None or bound.first() is not None or self._ends_now:
            return
        values = {"id": source, "source": source, "stack_id": ward.stack_id, "name": NODES, "members": True}
        health.attach(tx, {**values, "spec": spec, "enabled": enabled}, self.db.now_of(tx))
        ward.spec, ward.source, ward.enabled = spec, source, enabled

    def _detach(self) -> None:
        ward, api = self._ward(), self.apis[0]
        if ward is None:
            return

        def detach(_: StackService) -> None:
            with api.db.write() as tx:
                self._take_away(tx, ward)
            if not self._ends_now:
                ward.spec = None

        self._request(detach, f"detach from s{ward.number}")
        self.laws.note("detached in the middle")

    def _toggle(self) -> None:
        """A policy is switched off, or on again."""
        ward, api = self._ward(), self.apis[0]
        if ward is None:
            return

        def toggle(_: StackService) -> None:
            if self._ends_now:
                return
            with api.db.write() as tx:
                health.switch(tx, ward.source, enabled=not ward.enabled, now=self.db.now_of(tx))
            ward.enabled = not ward.enabled

        self._request(toggle, f"switch the policy of s{ward.number}")
        self.laws.note("switched in the middle")

    # -- rest --------------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        super().calm()
        self.end_trouble()
        # Each fence of each recovery would take minutes, one after the other.
        self.cloud.weather = replace(self.cloud.weather, faults=replace(self.cloud.weather.faults, fence=0.0))
        for handle in self.cloud.things():
            self.cloud.change(handle, locked=False)
        for api in self.apis:
            api.requests.clear()
        for ward in self.wards:
            if ward.stack_id:
                self._amend(ward)
        self._revive()
        self._ends_now = True  # a request that is being served takes no policy away any more

    def _amend(self, ward: Ward) -> None:
        """The policy is one that recovers everything by itself; what has none is brought back by convergence."""
        self._read(ward)
        spec = ward.spec
        if spec is None or ward.unwatched:
            self._converge_again(ward)
        elif not recovers_all(spec, self.places) or self.rng.random() < CALM_SHARE:
            with self.db.write() as tx:
                self._take_away(tx, ward)
                self._sources += 1
                self._bind(tx, ward, f"policy{self._sources}", amended(spec, self.places))
            self.note(f"amend the policy of s{ward.number}")

    def _read(self, ward: Ward) -> None:
        """What holds for it by what is stored: of a request that has failed, the commit may have succeeded, or not."""
        chosen = "SELECT spec, source, enabled FROM health_check WHERE stack_id = ?"
        found = self.db.raw.execute(chosen, (ward.stack_id,)).fetchone()
        spec, ward.source, enabled = found or ("null", "", True)
        ward.spec, ward.enabled = json.loads(spec), bool(enabled)

    def _converge_again(self, ward: Ward) -> None:
        ward.converges = True
        try:
            StackActions(self.db, 900.0).switch(ward.stack_id, ConvergenceSettings(exceptions={NODES: {}}))
        except Rejected as error:
            self.note(f"refused: {error}")

    def _is_left_alone(self, ward: Ward) -> bool:
        return any(each.id == ward.stack_id and NODES in (each.exceptions or {}) for each in self.all_stacks())

    def _revive(self) -> None:
        """People start what no policy sees, or what nothing brings back."""
        wards = {self.group(each): each for each in self.wards if each.stack_id}
        owners = {row.handle: wards.get(row.stack_id) for row in self.rows() if row.handle}
        for handle, server in sorted(self.cloud.things("server").items()):
            ward = owners.get(handle)
            policy = policy_of(ward.spec) if ward is not None and ward.spec is not None and ward.enabled else None
            if policy is None or not sees(policy, server, host_down=False):
                self.cloud.change(handle, status="active")
                self.laws.evidence.brought_back.add(handle)

    def _moving(self) -> bool:
        return super()._moving() or bool(self.laws.unsettled())

    def _jump(self, rested_at: float | None) -> None:
        """Users unlock and resume what they may, take back what they have marked, and say that what is gone is gone."""
        self._free()
        self._agree()
        for ward in self.wards:
            self._read(ward)
            if ward.stack_id and ward.unwatched and self._is_left_alone(ward):
                self._converge_again(ward)  # it may have been refused while the stack was locked
            elif ward.spec is not None and not recovers_all(ward.spec, self.places):
                # Another one was being attached in the moment in which everything became calm.
                self._ends_now = False
                self._amend(ward)
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
        there, groups = self.cloud.things("server"), {self.group(each): each for each in self.wards if each.stack_id}
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
        self.mended.update(self.group(each) for each in self.wards if each.stack_id)
        super().settle(within_s)
        self.laws.check_rest(self.cloud)
