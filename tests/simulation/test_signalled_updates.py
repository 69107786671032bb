"""The ring with groups of instances that wait for the signals of their members before the next batch.

Members report late, twice, out of turn, a failure, or never, while workers and APIs are killed. Some groups limit how
many members may be away, and those that have to report count (ADR 0067). `HOMEOSTAT_SEEDS=1000` plays more.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pytest

from homeostat.builtin.member_reports import MemberReport
from homeostat.model.budget import Limit
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.model.status import Status
from homeostat.resources import groups
from tests.simulation.actors import Api
from tests.simulation.caretaking import Caretakers
from tests.simulation.disturbances import Disturbances
from tests.simulation.groups_away import PREPARED_WITHIN, away_now, members_of
from tests.simulation.parts import Part
from tests.simulation.playing import Ring, seeds_to_play
from tests.simulation.templates import DesiredStack, Resources, TemplateMutator
from tests.simulation.trouble import troubled
from tests.simulation.users import Users

pytestmark = pytest.mark.heavy

ROUNDS, STEPS = 3, 200
"""How often each stack gets another image in the end, and the steps before each time."""
IMAGES = "abcdef"
INSTANCES, LAUNCH = "OS::Heat::InstanceGroup", "AWS::AutoScaling::LaunchConfiguration"
PENDING = """SELECT s.id, s.parent_key, s.revision, s.status, s.step_at, s.complete_revision, r.template FROM stack s
    JOIN revision r ON r.stack_id = s.id AND r.number = s.revision AND r.kind = 'group'
    WHERE s.deleted_at IS NULL AND s.parent_key IS NOT NULL"""
MEMBERS = """SELECT name, handle FROM resource WHERE stack_id = ? AND replaced_by IS NULL AND action <> 'DELETE'"""
REPORTS = "SELECT member, succeeded_at, failed_at FROM member_report WHERE key = ?"


class Grouper(TemplateMutator):
    """Each stack that it grows has a group of instances, which mostly waits for signals."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        desired.resources |= {"r0": self.launch(), "r1": self.instances()}
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        changed, rng = super().mutate(desired), self._rng
        group, launch = (changed.resources.get(name, {}) for name in ("r1", "r0"))
        if group.get("type") == INSTANCES and launch.get("type") == LAUNCH:
            if rng.random() < 0.6:
                changed.resources["r0"] = self.launch()
            if rng.random() < 0.2:
                changed.resources["r1"] = self.instances()
        return changed

    def launch(self) -> dict[str, Any]:
        return {"type": LAUNCH, "properties": {"ImageId": self._rng.choice(IMAGES), "InstanceType": "f"}}

    def instances(self) -> dict[str, Any]:
        rng = self._rng
        policy: dict[str, Any] = {
            "MaxBatchSize": rng.randint(1, 2),
            "MinInstancesInService": rng.randint(0, 2),
            "MinSuccessfulInstancesPercent": rng.choice((100, 100, 75, 50)),
            "WaitOnResourceSignals": rng.random() < 0.8,
            "PauseTime": rng.choice(("PT5S", "PT1M")),
        }
        if rng.random() < 0.3:
            policy["SuspendProcesses"] = [rng.choice(("HealthCheck", "AlarmNotification", "Launch"))]
        properties = {
            "AvailabilityZones": ["nova"],
            "LaunchConfigurationName": {"get_resource": "r0"},
            "Size": rng.randint(1, 4),
        }
        limit = {"max_unavailable": rng.choice(("1", "2", "50%"))} if rng.random() < 0.5 else {}
        return {"type": INSTANCES, "properties": properties, "update_policy": {"RollingUpdate": policy, **limit}}

    def _change(self, resources: Resources, name: str) -> None:
        kind = resources[name]["type"]
        if kind == INSTANCES:
            resources[name]["properties"]["Size"] = self._rng.randint(0, 4)
        elif kind == LAUNCH:
            resources[name] = self.launch()
        else:
            super()._change(resources, name)


class Waiting(NamedTuple):
    """A group as one commit left it: its revision, its members and what they have reported."""

    revision: int
    step_at: float | None
    complete: bool
    group: Mapping[str, Any]
    members: Mapping[str, str]
    reports: Mapping[str, tuple[float | None, float | None]]


class MemberSignals(Part):
    """Members of groups that report, and users who want other images.

    It counts the batches that followed one whose members had to report; those of them that did so because all had
    reported; those within a limit that took members away, the first ones of an update among them; and those of these
    that came while members had to report.
    """

    def __init__(self) -> None:
        self._recent: list[dict[str, set[str]]] = []
        self._known: dict[str, Waiting] = {}
        self._judged_at = -1

    def begin(self) -> None:
        self._users = self.world.part(Users)
        self._users.gardener = self._grouper = Grouper(self.rng, nested=True)
        self.world.acts.append((25.0, self._report))

    # -- invariants ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        if self._judged_at == self.world.watcher.commits:
            return
        self._judged_at = self.world.watcher.commits
        now_known, away = self._asking(), away_now(self.db)
        for stack_id, before in self._known.items():
            after = now_known.get(stack_id)
            if after is not None and after.revision != before.revision:
                self._judge(before, after)
                self._judge_limit(stack_id, before, after, away[stack_id])
        self._known = now_known
        self._recent = [*self._recent[1 - PREPARED_WITHIN :], away]

    def _asking(self) -> dict[str, Waiting]:
        """All groups whose members may have to report."""
        found = {}
        for stack_id, key, revision, _, step_at, complete, template in self._groups():
            group = json.loads(template)
            if not (group.get("rollout") or {}).get("reports"):
                continue
            members = dict(self.db.raw.execute(MEMBERS, (stack_id,)).fetchall())
            reports = {member: at for member, *at in self.db.raw.execute(REPORTS, (key,)).fetchall()}
            found[stack_id] = Waiting(revision, step_at, complete == revision, group, members, reports)
        return found

    def _groups(self) -> list[Any]:
        """Id, key, revision, status, due time and complete revision of the stacks of all groups, and the groups."""
        return self.db.raw.execute(PENDING).fetchall()

    def _judge(self, before: Waiting, after: Waiting) -> None:
        """Where one batch has followed another, enough members of the first one had reported."""
        asked, following = (each.group["rollout"]["reports"] for each in (before, after))
        same = before.group["resource_def"] == after.group["resource_def"]
        if not same or following["number"] != asked["number"] + 1:
            return
        self.world.happened["batches"] += 1
        said = list(self._heard_of(before).values())
        allowed = asked["total"] - -(-asked["total"] * asked["percent"] // 100)
        late = before.step_at is not None and before.step_at <= self.clock.time
        assert None not in said or late, f"a batch follows before {said} have reported: {before} {after}"
        self.world.happened["heard"] += bool(said) and None not in said and not late
        assert asked["lost"] + len(said) - said.count(True) <= allowed, f"too many failed: {said}: {before} {after}"
        size = groups.members_in(
            [(low, high, {}) for low, high in after.group["rollout"]["batch"]], after.group["skip"]
        )
        assert size <= after.group["rollout"]["max_batch_size"], f"{size} members move at once: {after}"

    def _judge_limit(self, stack_id: str, before: Waiting, after: Waiting, away: set[str]) -> None:
        """No more members are away than may be, those included that have to report."""
        plan, old, new = after.group["rollout"], _members_of(before), _members_of(after)
        there = old.keys() & new.keys()
        # One that has no row yet serves nobody.
        changed = {name for name in there & before.members.keys() if old[name] != new[name]}
        asked, following = (each.group["rollout"]["reports"] for each in (before, after))
        follows = before.group["resource_def"] == after.group["resource_def"] and following["number"] > asked["number"]
        waited_for = {name for name, said in self._unheard_of(before).items() if not said}
        if not follows and not before.complete and asked["count"] is None:
            waited_for |= {name for name, said in self._heard_of(before).items() if not said}
        away, taken = (away | waited_for) & there, changed - away - waited_for
        if not follows:  # It is worked out before the stack is locked: members may have gone or come back meanwhile.
            recent = [each[stack_id] | waited_for for each in self._recent]
            taken, away = taken.difference(*recent), away.intersection(*recent)
        limit = Limit(plan["min_in_service"], plan.get("max_unavailable") or "")
        if not limit.binds or not taken:
            return
        self.world.happened["limited"] += 1
        self.world.happened["overtaken"] += bool(waited_for)
        kept = min(limit.min_in_service, plan["target"], before.group["count"])
        most = min(len(there) - kept, limit.unavailable_max(plan["target"]))
        assert len(away) + len(taken) <= most, f"{away} are away, {taken} are changed, {most} may be: {before} {after}"

    def _heard_of(self, group: Waiting) -> dict[str, bool | None]:
        """What each member of the batch has said, by name."""
        rollout = group.group["rollout"]
        return self._all_said(group, [(*each, rollout["reports"]["since"]) for each in rollout["batch"]])

    def _unheard_of(self, group: Waiting) -> dict[str, bool | None]:
        """The same of those that had to report to an update before."""
        return self._all_said(group, group.group["rollout"].get("unheard", ()))

    def _all_said(self, group: Waiting, ranges: Iterable[tuple[int, int, float]]) -> dict[str, bool | None]:
        names = {str(number): since for low, high, since in ranges for number in range(low, high)}
        there = {name: group.members[name] for name in names if name in group.members}
        return {name: self._said(group.reports.get(handle), names[name]) for name, handle in there.items()}

    def _said(self, report: tuple[float | None, float | None] | None, since: float) -> bool | None:
        """What a member says: that it is well, that it is not, or nothing."""
        succeeded_at, failed_at = report or (None, None)
        if (failed_at or 0.0) >= since:
            return False
        return True if (succeeded_at or 0.0) >= since else None

    # -- users -------------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """After the trouble of all rings users change the images of stacks which are not held back by anything."""
        self.world.replace_dead()
        for _ in range(2):
            self._users.create()
        for _ in range(ROUNDS):
            for _ in range(STEPS):
                self.world.part(Disturbances).go_on(self._report)
            self.world.replace_dead()
            self.world.part(Caretakers).free()
            for stack in self.world.all_stacks():
                if stack.deleted_at is None and stack.id in self._users.desired:
                    self._relaunch(stack.id)

    def _relaunch(self, stack_id: str) -> None:
        """A user wants nothing but a group with another image: its members change in batches."""
        desired = copy.deepcopy(self._users.desired[stack_id])
        launch, group = self._grouper.launch(), desired.resources.get("r1", {})
        if group.get("type") != INSTANCES or self.rng.random() < 0.2:
            group = self._grouper.instances()
        group["update_policy"]["RollingUpdate"]["WaitOnResourceSignals"] = True
        group["properties"]["LaunchConfigurationName"] = {"get_resource": "r0"}
        group.pop("depends_on", None)
        desired.held = {}
        desired.resources = {"r0": launch, "r1": group}
        self._users.want(stack_id, desired, f"relaunch {stack_id[:6]} {desired}")

    # -- members -----------------------------------------------------------------------------------------------------

    def pass_time(self) -> bool:
        """Before time passes members mostly report: few batches wait until the end of their time."""
        waited_for = [each for each in self._asked() if each[0] in self._waited_for()]
        if not waited_for or self.rng.random() >= 0.9:
            return False
        self._report(waited_for)
        return True

    def _waited_for(self) -> set[str]:
        """Keys of the groups whose batch waits for reports."""
        return {key for _, key, _, status, at, *_ in self._groups() if status == Status.IN_PROGRESS and at is not None}

    def _asked(self) -> list[tuple[str, str]]:
        """Key of the group, and handle of each member that may have to report."""
        groups_made = {row.key: row for row in self.world.rows() if row.type == INSTANCES}
        keys = {each.id: each.parent_key for each in self.world.all_stacks() if each.parent_key in groups_made}
        mine = [(keys[row.stack_id], row.handle) for row in self.world.rows() if row.stack_id in keys and row.handle]
        return sorted(mine)

    def _report(self, members: list[tuple[str, str]] | None = None) -> None:
        """A member reports, one of these or of all, perhaps twice, or as one that does not exist."""
        rng = self.rng
        asked = members or self._asked()
        if not asked or not self.world.serving:
            return
        key, member = rng.choice(asked)
        said = MemberReport(rng.choice((member,) * 9 + ("no such member",)), rng.random() < 0.05, "said so")
        api = rng.choice(self.world.serving)

        def send(api: Api) -> None:
            api.reports.take(key, said)
            self.world.happened["reported"] += 1

        api.requests.extend([send] * rng.choice((1, 1, 2)))
        self.note(f"report {'failure' if said.failed else 'success'} of {said.member} to {key}")

    def last_word(self) -> None:
        """After the calm every member reports."""
        for key, member in self._asked():
            if any(row.status == Status.IN_PROGRESS and row.key == key for row in self.world.rows()):
                try:
                    self.world.apis[0].reports.take(key, MemberReport(member, failed=False))
                except Rejected as error:
                    self.note(f"refused: {error}")


RING = Ring("signalled_updates", lambda seed: troubled(seed, MemberSignals()))


@pytest.mark.parametrize("seed", seeds_to_play(2))
def test_groups_that_wait_for_signals_converge_and_no_invariant_is_broken(seed: int) -> None:
    RING.played(seed)


def test_batches_follow_one_another_in_these_worlds() -> None:
    RING.play_until(range(36), {"reported": 21, "batches": 5, "heard": 5, "limited": 4})


def _members_of(waiting: Waiting) -> dict[str, Any]:
    return members_of(GroupDefinition.decoded(waiting.group))
