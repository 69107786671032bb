"""Rollouts: members that report late, twice, out of turn or never, users who steer, and what befalls a
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
from homeostat.store.stacks import revisions
from tests.simulation.actors import Api, Killed, Worker
from tests.simulation.caretaking import Caretakers
from tests.simulation.disturbances import Disturbances
from tests.simulation.doubting import Doubters
from tests.simulation.parts import Part
from tests.simulation.rolling_templates import CONDITION, FLEET, FLEETS, Roller
from tests.simulation.rollout_invariants import Rolling, RolloutInvariants
from tests.simulation.templates import DesiredStack
from tests.simulation.trouble import Trouble
from tests.simulation.users import Users

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


class Rollouts(Part):
    """Groups whose members get something new in steps. invariants — of rollouts; roller — what grows such groups."""

    def __init__(self) -> None:
        self._fleets: set[str] = set()
        self._tempers: dict[tuple[str, float, str], str] = {}

    def begin(self) -> None:
        self.world.part(Trouble).steps = self.rng.choice((30, 60, 250))
        self._users, self._disturbances = self.world.part(Users), self.world.part(Disturbances)
        self._users.gardener = self.roller = self.grown()
        self.world.acts += [(25.0, self._report_anything), (4.0, self._steer)]
        self.invariants = self.judged()
        self._doubters = self.world.part(Doubters)
        self._doubters.amid_updates = True

    def grown(self) -> Roller:
        return Roller(self.rng, nested=True)

    def judged(self) -> RolloutInvariants:
        return RolloutInvariants(self.db, lambda: self.clock.time)

    def committed(self) -> None:
        self.invariants.committed()

    def check(self) -> None:
        assert not self.invariants.wrong, "; ".join(self.invariants.wrong)

    # -- workers -----------------------------------------------------------------------------------------------------

    def hired(self, worker: Worker) -> None:
        worker.engine.rollouts._ask = self._ask

    def looked(self, worker: Worker) -> None:
        """Rollouts go on, and groups scale whose signals had to wait."""
        try:
            worker.engine.rollouts.round()
            worker.engine.scaling.round()
        except Transient:
            return
        except Killed:
            self.invariants.note("killed while a rollout goes on")
            raise

    def _ask(self, url: str) -> str:
        """Answer in place of URLs."""
        (answer,) = self.rng.choices(("200", "503", "404"), (40, 3, 1))
        self.invariants.asked(greenlet.getcurrent(), answer)
        return answer

    def next_due(self) -> float | None:
        (due,) = self.db.raw.execute(DUE).fetchone()
        return float(due) if due is not None else None

    def ended(self) -> None:
        """What is complete has the metadata of its template, unless its stack was suspended or failed in the middle."""
        self.world.happened.update(self.invariants.happened)
        stopped = {each.id for each in self.world.all_stacks() if each.suspended or each.status == Status.FAILED}
        for row in self.world.rows():
            if row.type in FLEETS and row.status == Status.COMPLETE and row.stack_id not in stopped:
                assert row.new_metadata is None, f"{row.name} is complete, and its members wait for metadata"
                self._check_wanted(row)

    def _check_wanted(self, row: Any) -> None:
        stack = next(each for each in self.world.all_stacks() if each.id == row.stack_id)
        with self.db.read() as tx:
            template = revisions.content_of(tx, stack.id, stack.revision).template
        if row.stack_id in self._fleets and stack.complete_revision == stack.revision:
            wanted = template["resources"][row.name]["metadata"]
            assert row.metadata == wanted, f"the members of {row.name} have {row.metadata}, not {wanted}"

    # -- fleets ------------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """After the trouble of all rings, fleets that get one metadata after the other, and trouble in the middle."""
        self._clear_up()
        for _ in range(2):
            self._create_fleet()
        for _ in range(FLEET_STEPS):
            if self.invariants.happened["begun"] >= ROLLOUTS and not self.invariants.going_on():
                break
            self._go_on()

    def _clear_up(self) -> None:
        """Most of the trouble so far is over, so that there are fleets to roll out to."""
        self.world.end_all()
        if self.rng.random() < 0.7:
            self.world.usual = Faults()
        for cloud in self.world.clouds.values():
            cloud.behaviour.quota, cloud.behaviour.faults = None, self.world.usual
        for process in self.world.processes:
            process.calm()
        self.world.replace_dead()

    def _create_fleet(self) -> None:
        name, desired = self._users.new_name("fleet"), self.roller.fleet()
        project, disable_rollback = self.rng.choice(self.world.projects), self.rng.random() < 0.7

        def create(api: Api) -> None:
            request = desired.request(disable_rollback=disable_rollback)
            stack_id = api.stack_service.create(project, None, name, request)
            self._users.desired[stack_id] = desired
            self._fleets.add(stack_id)

        self._users.ask(create, f"create {project}/{name} {desired}")

    def _go_on(self) -> None:
        rng = self.rng
        self.world.end_outages()
        if rng.random() < 0.05:
            self.world.replace_dead()
        if rng.random() < 0.03:
            self.world.part(Caretakers).free()
        under_way = self.invariants.under_way()
        if under_way and rng.random() < 0.03:
            self._befall(under_way)
        elif under_way and rng.random() < 0.1:
            self._report_next()
        elif rng.random() < 0.06:
            self._turn()
        self.world.step_or_wait(0.0, 0.0, 0.01, 0.1, 0.5)

    def _turn(self) -> None:
        """A user wants other metadata for a fleet of which nothing goes on."""
        busy = {each.id for each in self.world.all_stacks() if each.status == Status.IN_PROGRESS or each.deleted_at}
        resting = sorted(self._fleets - busy)
        if resting:
            self._want(self.rng.choice(resting), self.roller.turned)

    def _want(self, stack_id: str, change: Callable[[DesiredStack], DesiredStack]) -> None:
        desired = change(self._users.desired[stack_id])
        self._users.want(stack_id, desired, f"turn {stack_id[:6]} {desired.resources[FLEET]}")

    # -- in the middle -----------------------------------------------------------------------------------------------

    def _befall(self, under_way: list[Rolling]) -> None:
        """Something happens to a rollout that has reached members."""
        rolling = self.rng.choice(under_way)
        befalls: Mapping[str, tuple[int, Callable[[], None]]] = {
            "killed in the middle": (3, self._disturbances.kill),
            "dies in the middle": (2, self._disturbances.die_inside),
            "frozen in the middle": (1, self._disturbances.freeze),
            "loses connections in the middle": (1, self._disturbances.make_flaky),
            "a revision in the middle": (2, lambda: self._revise(rolling.stack_id)),
            "corrected": (3, lambda: self._correct(rolling.stack_id)),
            "revised in the middle": (4, lambda: self._proceed_otherwise(rolling.stack_id)),
            "a signal to scale in the middle": (4, self._scale),
            "a member dies in the middle": (3, lambda: self._lose_member(rolling)),
            "all members die in the middle": (1, lambda: self._lose_all(rolling)),
            "a user says that they are gone": (2, self._doubters.agree),
            "locked in the middle": (2, lambda: self._hold_back(rolling.stack_id, lock=True)),
            "suspended in the middle": (2, lambda: self._hold_back(rolling.stack_id, lock=False)),
            "steered in the middle": (4, self._steer),
            "an alarm in the middle": (4, self._fire),
            "cancelled in the middle": (1, lambda: self._users.cancel(rolling.stack_id)),
            "a report of another step": (4, self._report_anything),
            "marked in the middle": (1, self._users.mark),
            "time jumps in the middle": (1, self._disturbances.jump_ahead),
        }
        (story,) = self.rng.choices(list(befalls), [weight for weight, _ in befalls.values()])
        befalls[story][1]()
        self.invariants.note(story)

    def _revise(self, stack_id: str) -> None:
        """Another size with the same metadata."""
        if stack_id in self._fleets:
            desired = copy.deepcopy(self._users.desired[stack_id])
            self.roller.resize(desired)
            self._want(stack_id, lambda _: desired)

    def _correct(self, stack_id: str) -> None:
        if stack_id in self._fleets:
            self._want(stack_id, self.roller.turned)

    def _proceed_otherwise(self, stack_id: str) -> None:
        """The same metadata, or definition, with other gates, times or steps."""
        if stack_id in self._fleets:
            self._want(stack_id, self.roller.revised)

    def _scale(self) -> None:
        policies = sorted((each.project, each.id) for each in self.world.records() if each.kind == POLICY_KIND)
        if policies:
            self._signal(*self.rng.choice(policies), POLICY_KIND, None)

    def _lose_member(self, rolling: Rolling) -> None:
        mine = {row.handle for row in self.world.rows() if row.stack_id == rolling.child}
        clouds = self.world.clouds.items()
        there = sorted((name, each) for name, cloud in clouds for each in mine & cloud.things().keys())
        if there:
            self._vanish(*self.rng.choice(there))

    def _lose_all(self, rolling: Rolling) -> None:
        """Nobody believes that all are gone, until a user says so."""
        mine = {row.handle for row in self.world.rows() if row.stack_id == rolling.child}
        for name, cloud in self.world.clouds.items():
            for handle in sorted(mine & cloud.things().keys()):
                self._vanish(name, handle)

    def _vanish(self, project: str, handle: str) -> None:
        self.world.clouds[project].vanish(handle)
        self.note(f"{handle} vanishes")
        self._disturbances.sight(handle)

    def _hold_back(self, stack_id: str, *, lock: bool) -> None:
        if lock:
            self.world.part(Caretakers).lock(stack_id, "all", None, f"lock {stack_id[:6]}")
        else:
            self._users.ask(lambda api: api.actions.begin(stack_id, Action.SUSPEND), f"suspend {stack_id[:6]}")

    def _fire(self) -> None:
        listening = sorted(self.db.raw.execute(ALARMS).fetchall())
        if listening:
            handle, project = self.rng.choice(listening)
            body = self.rng.choice(({"status": "firing", "alerts": []}, {"current": "alarm", "alarm_name": "latency"}))
            self._signal(project, handle, HANDLE_KIND, body)

    # -- members -----------------------------------------------------------------------------------------------------

    def pass_time(self) -> bool:
        """Before time passes members mostly report, and users have their say."""
        return self.rng.random() < 0.9 and (self._report_next() or self._have_a_say())

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
        waiting = any(row.type == CONDITION and row.status == Status.IN_PROGRESS for row in self.world.rows())
        handles = sorted((each.project, each.id) for each in self.world.records() if each.kind == HANDLE_KIND)
        if waiting and handles:
            for project, handle in handles:
                self._signal(project, handle, HANDLE_KIND, {"data": "the first"})
        return waiting and bool(handles)

    def _report_anything(self) -> None:
        """A member reports, perhaps twice, or out of turn, or as one that does not exist."""
        rng = self.rng
        handles = sorted((each.project, each.id) for each in self.world.records() if each.kind == HANDLE_KIND)
        if not handles:
            return
        waited_for = self._waited_for()
        out_of_turn = sorted(row.handle for row in self.world.rows() if row.handle and row.name.isdigit()) or ["nobody"]
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
        if not self.world.serving:
            return

        def send(api: Api) -> None:
            api.signals.native(project, kind, handle, body)
            self.world.happened["reported"] += 1

        self.rng.choice(self.world.serving).requests.append(send)
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
        self._users.ask(lambda api: getattr(RolloutEngine(api.db), verb)(key), f"{verb} {key}")

    # -- rest --------------------------------------------------------------------------------------------------------

    def last_word(self) -> None:
        """After the calm every member reports, and users let everything go on."""
        self._all_report()
        for each in [each for each in self.invariants.going_on() if _waits_for_user(each)]:
            verb = {"paused": "resume", "held": "resume", "running": "approve"}[each.state]
            try:
                getattr(RolloutEngine(self.world.apis[0].db), verb)(each.key)
            except Rejected as error:  # it asks for no approval, or its stack is suspended
                self.note(f"refused: {error}")

    def _all_report(self) -> None:
        """Members that are waited for, and the first signal for what waits for one."""
        receiver = self.world.apis[0].receiver()
        for rolling in self.invariants.under_way():
            silent = [name for name, each in sorted(rolling.members.items()) if not each.status]
            for handle, bit, project in self._handles(rolling.key):
                for member in silent if bit >= 0 else ():
                    self._last_word(receiver, project, handle, member)
        if any(row.type == CONDITION and row.status == Status.IN_PROGRESS for row in self.world.rows()):
            for record in [each for each in self.world.records() if each.kind == HANDLE_KIND]:
                self._last_word(receiver, record.project, record.id, "the first")

    def _last_word(self, receiver: Signals, project: str, handle: str, member: str) -> None:
        try:
            receiver.native(project, HANDLE_KIND, handle, {"data": member})
        except Rejected as error:
            self.note(f"refused: {error}")


def _waits_for_user(rolling: Rolling) -> bool:
    asks = rolling.how["approval"] and rolling.step > rolling.approved and rolling.reported_at is not None
    return rolling.state in (RolloutState.PAUSED, RolloutState.HELD) or bool(asks)
