"""The world of rollouts: members that report late, twice, out of turn or never, users who steer, and what befalls a
rollout in the middle."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import greenlet

from homeostat.builtin.signals import Signals
from homeostat.clouds.simulated import Faults
from homeostat.convergence.members.rollouts import RolloutEngine
from homeostat.model.errors import Rejected, Transient
from homeostat.model.rollout import RolloutState
from homeostat.model.status import Action, Status
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.resources.families.wait_conditions import HANDLE as HANDLE_KIND
from homeostat.services.stacks import StackService
from homeostat.store.stacks import revisions
from tests.simulation.actors import Killed, Worker
from tests.simulation.rolling_templates import CONDITION, FLEET, FLEETS, Roller
from tests.simulation.rollout_invariants import Rolling, RolloutInvariants
from tests.simulation.templates import DesiredStack
from tests.simulation.trouble import TroubledWorld

ROLLOUTS, FLEET_STEPS = 4, 1500
"""Rollouts of fleets in one world, and the steps in which there are to be so many."""
VERBS = ("pause", "pause", "resume", "approve", "promote", "abort", "roll_back")
WAY_ON = {RolloutState.PAUSED: ("resume",) * 9 + ("roll_back",), RolloutState.RUNNING: ("approve",)}
DUE = "SELECT min(due_at) FROM (SELECT due_at FROM rollout UNION ALL SELECT due_at FROM deferred_signal)"
HANDLES = "SELECT g.handle, g.bit, r.project FROM rollout_gate g JOIN record r ON r.id = g.handle WHERE g.key = ?"
ALARMS = "SELECT g.handle, r.project FROM rollout_gate g JOIN record r ON r.id = g.handle WHERE g.bit < 0"
TEMPERS = {"well": 73, "failing": 7, "mute": 5, "twice": 5, "changing": 5, "late": 5}
SILENT = {"well": 40, "failing": 5, "mute": 20, "changing": 15, "late": 20}
"""What members are like, with weights: in most rollouts, and where not all have to report."""

Body = dict[str, Any]


class RollingWorker(Worker):
    """One that makes rollouts go on, too, and scales groups whose signals had to wait. died — called when it is killed
    while it does that; ask — answers in place of URLs."""

    died: Callable[[], None]
    ask: Callable[[str], str]

    def _look(self) -> None:
        super()._look()
        self._engine.rollouts._ask = self.ask
        try:
            self._engine.rollouts.round()
            self._engine.scaling.round()
        except Transient:
            return
        except Killed:
            self.died()
            raise


class RollingWorld(TroubledWorld):
    """invariants — of rollouts; reported — signals that were answered."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.steps = self.rng.choice((30, 60, 250))
        self._mutator = self._roller = Roller(self.rng, nested=True)
        self._acts += [(25.0, self._report_anything), (4.0, self._steer)]
        self.invariants = RolloutInvariants(self.db, lambda: self.clock.time)
        self.db.on_commit = self._committed
        self.reported = 0
        self.doubters.amid_updates = True
        self._fleets: set[str] = set()
        self._tempers: dict[tuple[str, float, str], str] = {}

    def _committed(self) -> None:
        self.watcher.committed()
        self.invariants.committed()

    def _worker(self) -> Worker:
        self._born += 1
        name = f"w{self._born}"
        worker = RollingWorker(name, self.db, self.clouds, self.clock, self.entropy, self.rng, self.plugin_types)
        worker.died = lambda: self.invariants.note("killed while a rollout goes on")
        worker.ask = self._ask
        return worker

    def _ask(self, url: str) -> str:
        (answer,) = self.rng.choices(("200", "503", "404"), (40, 3, 1))
        self.invariants.asked(greenlet.getcurrent(), answer)
        return answer

    def next_due(self) -> float | None:
        (due,) = self.db.raw.execute(DUE).fetchone()
        times = [at for at in (super().next_due(), due) if at is not None]
        return min(times, default=None)

    def check(self) -> None:
        super().check()
        assert not self.invariants.wrong, "; ".join(self.invariants.wrong)

    def check_rollouts(self) -> None:
        """What is complete has the metadata of its template, unless its stack was suspended or failed in the middle."""
        stopped = {each.id for each in self.all_stacks() if each.suspended or each.status == Status.FAILED}
        for row in self.rows():
            if row.type in FLEETS and row.status == Status.COMPLETE and row.stack_id not in stopped:
                assert row.new_metadata is None, f"{row.name} is complete, and its members wait for metadata"
                self._check_wanted(row)

    def _check_wanted(self, row: Any) -> None:
        stack = next(each for each in self.all_stacks() if each.id == row.stack_id)
        with self.db.read() as tx:
            template = revisions.content_of(tx, stack.id, stack.revision).template
        if row.stack_id in self._fleets and stack.complete_revision == stack.revision:
            wanted = template["resources"][row.name]["metadata"]
            assert row.metadata == wanted, f"the members of {row.name} have {row.metadata}, not {wanted}"

    # -- fleets ------------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """After the trouble of all rings, fleets that get one metadata after the other, and trouble in the middle."""
        super().disturb()
        self._clear_up()
        for _ in range(2):
            self._create_fleet()
        for _ in range(FLEET_STEPS):
            if self.invariants.happened["begun"] >= ROLLOUTS and not self.invariants.going_on():
                break
            self._go_on()

    def _clear_up(self) -> None:
        """Most of the trouble so far is over, so that there are fleets to roll out to."""
        for _, end in self._ends:
            end()
        self._ends.clear()
        if self.rng.random() < 0.7:
            self._usual = Faults()
        for cloud in self.clouds.values():
            cloud.behaviour.quota, cloud.behaviour.faults = None, self._usual
        for process in self.processes:
            process.calm()
        self.replace_dead()

    def _create_fleet(self) -> None:
        name, desired = f"fleet{self._created}", self._roller.fleet()
        self._created += 1
        project, disable_rollback = self.rng.choice(self.projects), self.rng.random() < 0.7

        def create(stack_service: StackService) -> None:
            stack_id = stack_service.create(project, None, name, desired.request(disable_rollback=disable_rollback))
            self._desired[stack_id] = desired
            self._fleets.add(stack_id)

        self._request(create, f"create {project}/{name} {desired}")

    def _go_on(self) -> None:
        rng = self.rng
        self._end_outages()
        if rng.random() < 0.05:
            self.replace_dead()
        if rng.random() < 0.03:
            self._free()
        under_way = self.invariants.under_way()
        if under_way and rng.random() < 0.03:
            self._befall(under_way)
        elif under_way and rng.random() < 0.1:
            self._report_next()
        elif rng.random() < 0.06:
            self._turn()
        if not self.step():
            self._pass_time()
        self.clock.time += rng.choice((0.0, 0.0, 0.01, 0.1, 0.5))

    def _turn(self) -> None:
        """A user wants other metadata for a fleet of which nothing goes on."""
        busy = {each.id for each in self.all_stacks() if each.status == Status.IN_PROGRESS or each.deleted_at}
        resting = sorted(self._fleets - busy)
        if resting:
            self._want(self.rng.choice(resting), self._roller.turned)

    def _want(self, stack_id: str, change: Callable[[DesiredStack], DesiredStack]) -> None:
        desired = change(self._desired[stack_id])

        def update(stack_service: StackService) -> None:
            stack_service.update(stack_id, desired.request())
            self._desired[stack_id] = desired

        self._request(update, f"turn {stack_id[:6]} {desired.resources[FLEET]}")

    # -- in the middle -----------------------------------------------------------------------------------------------

    def _befall(self, under_way: list[Rolling]) -> None:
        """Something happens to a rollout that has reached members."""
        rolling = self.rng.choice(under_way)
        befalls: Mapping[str, tuple[int, Callable[[], None]]] = {
            "killed in the middle": (3, self._kill),
            "dies in the middle": (2, self._die_inside),
            "frozen in the middle": (1, self._freeze),
            "loses connections in the middle": (1, self._make_flaky),
            "a revision in the middle": (2, lambda: self._revise(rolling.stack_id)),
            "corrected": (3, lambda: self._correct(rolling.stack_id)),
            "revised in the middle": (4, lambda: self._proceed_otherwise(rolling.stack_id)),
            "a signal to scale in the middle": (4, self._scale),
            "a member dies in the middle": (3, lambda: self._lose_member(rolling)),
            "all members die in the middle": (1, lambda: self._lose_all(rolling)),
            "a user says that they are gone": (2, self.doubters.agree),
            "locked in the middle": (2, lambda: self._hold_back(rolling.stack_id, lock=True)),
            "suspended in the middle": (2, lambda: self._hold_back(rolling.stack_id, lock=False)),
            "steered in the middle": (4, self._steer),
            "an alarm in the middle": (4, self._fire),
            "cancelled in the middle": (1, lambda: self._cancel_of(rolling.stack_id)),
            "a report of another step": (4, self._report_anything),
            "marked in the middle": (1, self._mark),
            "time jumps in the middle": (1, self._jump_ahead),
        }
        (story,) = self.rng.choices(list(befalls), [weight for weight, _ in befalls.values()])
        befalls[story][1]()
        self.invariants.note(story)

    def _revise(self, stack_id: str) -> None:
        """Another size with the same metadata."""
        if stack_id in self._fleets:
            desired = copy.deepcopy(self._desired[stack_id])
            self._roller.resize(desired)
            self._want(stack_id, lambda _: desired)

    def _correct(self, stack_id: str) -> None:
        if stack_id in self._fleets:
            self._want(stack_id, self._roller.turned)

    def _proceed_otherwise(self, stack_id: str) -> None:
        """The same metadata, or definition, with other gates, times or steps."""
        if stack_id in self._fleets:
            self._want(stack_id, self._roller.revised)

    def _scale(self) -> None:
        policies = sorted((each.project, each.id) for each in self.records() if each.kind == POLICY_KIND)
        if policies:
            self._signal(*self.rng.choice(policies), POLICY_KIND, None)

    def _lose_member(self, rolling: Rolling) -> None:
        mine = {row.handle for row in self.rows() if row.stack_id == rolling.child}
        there = sorted((name, each) for name, cloud in self.clouds.items() for each in mine & cloud.things().keys())
        if there:
            self._vanish(*self.rng.choice(there))

    def _lose_all(self, rolling: Rolling) -> None:
        """Nobody believes that all are gone, until a user says so."""
        mine = {row.handle for row in self.rows() if row.stack_id == rolling.child}
        for name, cloud in self.clouds.items():
            for handle in sorted(mine & cloud.things().keys()):
                self._vanish(name, handle)

    def _vanish(self, project: str, handle: str) -> None:
        self.clouds[project].vanish(handle)
        self.note(f"{handle} vanishes")
        self.sight(handle)

    def _hold_back(self, stack_id: str, *, lock: bool) -> None:
        values = {"level": "all", "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None}
        if lock:
            self.act_on(lambda actions: actions.lock(stack_id, values, lambda _: True), f"lock {stack_id[:6]}")
        else:
            self.act_on(lambda actions: actions.begin(stack_id, Action.SUSPEND), f"suspend {stack_id[:6]}")

    def _cancel_of(self, stack_id: str) -> None:
        roll_back = self.rng.random() < 0.5
        self._request(
            lambda stack_service: stack_service.cancel(stack_id, roll_back=roll_back),
            f"cancel {stack_id[:6]} {roll_back=}",
        )

    def _fire(self) -> None:
        listening = sorted(self.db.raw.execute(ALARMS).fetchall())
        if listening:
            handle, project = self.rng.choice(listening)
            body = self.rng.choice(({"status": "firing", "alerts": []}, {"current": "alarm", "alarm_name": "latency"}))
            self._signal(project, handle, HANDLE_KIND, body)

    # -- members -----------------------------------------------------------------------------------------------------

    def _pass_time(self) -> None:
        """Before time passes members mostly report, and users have their say."""
        if self.rng.random() < 0.9 and (self._report_next() or self._have_a_say()):
            return
        super()._pass_time()

    def _temper(self, rolling: Rolling, member: str) -> str:
        """What this member is like in this rollout."""
        at = rolling.key, rolling.started_at, member
        if at not in self._tempers:
            tempers = SILENT if rolling.how["success_share"] < 1.0 else TEMPERS
            (self._tempers[at],) = self.rng.choices(list(tempers), list(tempers.values()))
        return self._tempers[at]

    def _report_next(self) -> bool:
        """A member that is waited for reports; False where none will, for now."""
        waiting = [
            (rolling, member)
            for rolling in self.invariants.under_way()
            for member, each in sorted(rolling.members.items())
            if not each.status and self._speaks(rolling, member, each.step)
        ]
        if not waiting:
            return self._complete_condition()
        rolling, member = self.rng.choice(waiting)
        temper = self._temper(rolling, member)
        said = {"failing": ["FAILURE"], "changing": self.rng.choice((["SUCCESS", "FAILURE"], ["FAILURE", "SUCCESS"]))}
        for status in said.get(temper, ["SUCCESS"] * (2 if temper == "twice" else 1)):
            for handle, bit, project in self._handles(rolling.key):
                if bit >= 0:
                    self._signal(project, handle, HANDLE_KIND, {"status": status, "data": member, "reason": "said so"})
        self.invariants.note(f"a member is {temper}")
        return True

    def _speaks(self, rolling: Rolling, member: str, step: int) -> bool:
        if not any(bit >= 0 for _, bit, _ in self._handles(rolling.key)):
            return False
        temper = self._temper(rolling, member)
        if temper == "mute":
            self.invariants.note("a member is mute")
        return temper != "mute" and (temper != "late" or step < rolling.step)

    def _handles(self, key: str) -> list[tuple[str, int, str]]:
        return sorted(self.db.raw.execute(HANDLES, (key,)).fetchall())

    def _complete_condition(self) -> bool:
        """What waits for the first signal gets it."""
        waiting = any(row.type == CONDITION and row.status == Status.IN_PROGRESS for row in self.rows())
        handles = sorted((each.project, each.id) for each in self.records() if each.kind == HANDLE_KIND)
        if waiting and handles:
            for project, handle in handles:
                self._signal(project, handle, HANDLE_KIND, {"data": "the first"})
        return waiting and bool(handles)

    def _report_anything(self) -> None:
        """A member reports, perhaps twice, or out of turn, or as one that does not exist."""
        rng = self.rng
        handles = sorted((each.project, each.id) for each in self.records() if each.kind == HANDLE_KIND)
        if not handles:
            return
        waited_for = self._waited_for()
        out_of_turn = sorted(row.handle for row in self.rows() if row.handle and row.name.isdigit()) or ["nobody"]
        member = rng.choice(waited_for) if waited_for and rng.random() < 0.6 else rng.choice(out_of_turn)
        project, handle = rng.choice(handles)
        body: Body = {"status": rng.choice(("SUCCESS",) * 5 + ("FAILURE",)), "data": member, "reason": "said so"}
        if rng.random() < 0.05:
            body = {"status": rng.choice(("firing", "resolved")), "alerts": []}
        for _ in range(rng.choice((1, 1, 2))):
            self._signal(project, handle, HANDLE_KIND, body)

    def _waited_for(self) -> list[str]:
        return sorted(
            name for each in self.invariants.under_way() for name, member in each.members.items() if not member.status
        )

    def _signal(self, project: str, handle: str, kind: str, body: Body | None) -> None:
        alive = [api for api in self.apis if api.alive]
        if not alive:
            return
        api = self.rng.choice(alive)

        def send(_: Any) -> None:
            api.signals.native(project, kind, handle, body)
            self.reported += 1

        api.requests.append(send)
        self.note(f"signal {body} to {handle}")

    # -- users -------------------------------------------------------------------------------------------------------

    def _have_a_say(self) -> bool:
        """A user lets a rollout go on that waits for one; False where none does."""
        waiting = sorted(self._undecided())
        if not waiting:
            return False
        key, state, stack_id = self.rng.choice(waiting)
        verbs = ("resume", "resume", "roll_back", "abort", "promote", "correct")
        verb = self.rng.choice(verbs if state == RolloutState.HELD else WAY_ON[RolloutState(state)])
        if verb == "correct":
            self._correct(stack_id)
        else:
            self._say(key, verb)
        return True

    def _undecided(self) -> list[tuple[str, str, str]]:
        """Key, state and stack of rollouts that wait for a user."""
        found = self.invariants.going_on()
        return [(each.key, each.state, each.stack_id) for each in found if _waits_for_user(each)]

    def _steer(self) -> None:
        keys = sorted(key for (key,) in self.db.raw.execute("SELECT key FROM rollout").fetchall())
        if keys:
            self._say(self.rng.choice(keys), self.rng.choice(VERBS))

    def _say(self, key: str, verb: str) -> None:
        alive = [api for api in self.apis if api.alive]
        if alive:
            api = self.rng.choice(alive)
            api.requests.append(lambda _: getattr(RolloutEngine(api.db), verb)(key))
            self.note(f"user: {verb} {key}")

    # -- rest --------------------------------------------------------------------------------------------------------

    def _jump(self, rested_at: float | None) -> None:
        """After the calm every member reports, and users let everything go on."""
        self._all_report()
        for each in [each for each in self.invariants.going_on() if _waits_for_user(each)]:
            verb = {"paused": "resume", "held": "resume", "running": "approve"}[each.state]
            try:
                getattr(RolloutEngine(self.apis[0].db), verb)(each.key)
            except Rejected as error:  # it asks for no approval, or its stack is suspended
                self.note(f"refused: {error}")
        super()._jump(rested_at)

    def _all_report(self) -> None:
        """Members that are waited for, and the first signal for what waits for one."""
        receiver = self.apis[0].receiver()
        for rolling in self.invariants.under_way():
            silent = [name for name, each in sorted(rolling.members.items()) if not each.status]
            for handle, bit, project in self._handles(rolling.key):
                for member in silent if bit >= 0 else ():
                    self._last_word(receiver, project, handle, member)
        if any(row.type == CONDITION and row.status == Status.IN_PROGRESS for row in self.rows()):
            for record in [each for each in self.records() if each.kind == HANDLE_KIND]:
                self._last_word(receiver, record.project, record.id, "the first")

    def _last_word(self, receiver: Signals, project: str, handle: str, member: str) -> None:
        try:
            receiver.native(project, HANDLE_KIND, handle, {"data": member})
        except Rejected as error:
            self.note(f"refused: {error}")


def _waits_for_user(rolling: Rolling) -> bool:
    asks = rolling.how["approval"] and rolling.step > rolling.approved and rolling.reported_at is not None
    return rolling.state in (RolloutState.PAUSED, RolloutState.HELD) or bool(asks)
