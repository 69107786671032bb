"""Worlds whose groups roll out: members that report late, twice, out of turn or never, and users who steer."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from homeostat.convergence.metadata_rollouts import MetadataRollouts
from homeostat.model.errors import Rejected, Transient
from homeostat.model.status import Status
from homeostat.resources.families.wait_conditions import HANDLE as HANDLE_KIND
from tests.simulation.actors import Worker
from tests.simulation.templates import GROUP, DesiredStack, Gardener, Resources
from tests.simulation.trouble import TroubledWorld

HANDLE, CONDITION = "OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition"
VERBS = ("pause", "resume", "approve", "promote", "abort", "roll_back")
DUE = "SELECT min(due_at) FROM rollout"
ACTIVE = "active_metadata_updates a JOIN rollout r ON r.key = a.resource_id"
WAITED_FOR = f"SELECT a.instance_id, r.key FROM {ACTIVE} WHERE a.status = '' AND r.state = 'running'"
KEPT = f"SELECT r.key FROM {ACTIVE} WHERE r.state = 'rolled_back'"


class Roller(Gardener):
    """Each stack that it grows has a group with metadata, and mostly a wait condition that depends on it."""

    def grow(self) -> DesiredStack:
        desired = super().grow()
        desired.resources["r0"] = self._group()
        if self._rng.random() < 0.6:
            desired.resources["r1"] = {"type": HANDLE}
            desired.resources["r2"] = {"type": CONDITION, "properties": self._properties(CONDITION, desired.resources)}
            desired.resources["r2"]["depends_on"] = ["r0"]
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        changed = super().mutate(desired)
        group = changed.resources.get("r0")
        if group is not None and group["type"] == GROUP and self._rng.random() < 0.6:
            group["metadata"] = {"v": self._rng.randint(0, 3)}
            if self._rng.random() < 0.3:
                self._gate(changed.resources)
        return changed

    def _gate(self, resources: Resources) -> None:
        """A gate that comes with new metadata, or one with another handle in its place."""
        rng = self._rng
        handle = rng.choice(("h0", "h1"))
        resources[handle] = {"type": HANDLE, **({"depends_on": ["r0"]} if rng.random() < 0.1 else {})}
        properties = {"handle": {"get_resource": handle}, "timeout": rng.choice((20, 600)), "count": rng.choice((1, 2))}
        resources["r9"] = {"type": CONDITION, "properties": properties, "depends_on": ["r0"]}

    def _group(self) -> dict[str, Any]:
        rng, group = self._rng, super()._group()
        group["properties"]["count"] = rng.randint(1, 5)
        group["metadata"] = {"v": rng.randint(0, 3)}
        group["properties"]["metadata_update_pattern"] = rng.choice(("rolling", "rolling", "canary", "immediate"))
        group["update_policy"] = {**group.get("update_policy", {}), "rollout": self._rollout()}
        return group

    def _rollout(self) -> dict[str, Any]:
        rng = self._rng
        chosen = {
            "steps": rng.choice((["1", "50%", "100%"], ["100%"], ["2"])),
            "bake_time": rng.choice((1, 30)),
            "max_failures": rng.choice((1, 2)),
            "min_success_percent": 50,
            "on_failure": rng.choice(("rollback", "hold", "abort")),
            "approval": True,
            "order": rng.choice(("random", "zone")),
            "progress_deadline": rng.choice((5, 60)),
            "checks": ["https://health.example/"],
        }
        return {name: chosen[name] for name in sorted(chosen) if rng.random() < 0.25}

    def _change(self, resources: Resources, name: str) -> None:
        resource = resources[name]
        if resource["type"] == GROUP and self._rng.random() < 0.6:
            resource["metadata"] = {"v": self._rng.randint(0, 3)}
            if self._rng.random() < 0.2:
                resource |= {name: each for name, each in self._group().items() if name != "properties"}
            return
        super()._change(resources, name)

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        if kind == HANDLE:
            return {}
        if kind == CONDITION:
            return {"handle": self._one_of(HANDLE, earlier), "timeout": self._rng.choice((60, 600)), "count": 1}
        return super()._properties(kind, earlier)


class RollingWorker(Worker):
    """One that makes rollouts go on, too."""

    def _look(self) -> None:
        super()._look()
        self._engine.rollouts._ask = lambda url: self.rng.choice(("200", "200", "503", "404"))
        try:
            self._engine.rollouts.round()
        except Transient:
            return


class RollingWorld(TroubledWorld):
    """reported — signals that were answered; stepped — the most members that had new metadata at a time."""

    laws: ClassVar[Mapping[str, str]] = {}
    """Query that finds nothing -> what is wrong where it does."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._gardener = Roller(self.rng, nested=True)
        self._acts += [(25.0, self._report), (4.0, self._steer)]
        self.reported = 0
        self.stepped = 0
        self._judged_at = -1

    def _worker(self) -> Worker:
        self._born += 1
        worker = f"w{self._born}"
        return RollingWorker(worker, self.db, self.clouds, self.clock, self.entropy, self.rng, self.plugin_types)

    def next_due(self) -> float | None:
        (due,) = self.db.raw.execute(DUE).fetchone()
        times = [at for at in (super().next_due(), due) if at is not None]
        return min(times, default=None)

    # -- laws --------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        if self._judged_at == self.watcher.commits:
            return
        self._judged_at = self.watcher.commits
        for law, broken in self.laws.items():
            found = self.db.raw.execute(law).fetchall()
            assert not found, f"{broken}: {found}"
        (active,) = self.db.raw.execute("SELECT count(*) FROM active_metadata_updates").fetchone()
        self.stepped = max(self.stepped, active)

    def check_rollouts(self) -> None:
        """What is complete has the metadata of its template, unless its stack was suspended or failed in the middle."""
        stopped = {each.id for each in self.all_stacks() if each.suspended or each.status == Status.FAILED}
        for row in self.rows():
            if row.type == GROUP and row.status == Status.COMPLETE and row.stack_id not in stopped:
                assert row.new_metadata is None, f"{row.name} is complete, and its members wait for metadata"

    # -- members and users -------------------------------------------------------------------------------------------

    def _waited_for(self) -> list[str]:
        return sorted(each for each, _ in self.db.raw.execute(WAITED_FOR).fetchall())

    def _report(self) -> None:
        """A member reports, perhaps twice, or out of turn, or as one that does not exist."""
        rng = self.rng
        handles = sorted((each.project, each.id) for each in self.records() if each.kind == HANDLE_KIND)
        alive = [api for api in self.apis if api.alive]
        if not handles or not alive:
            return
        waited_for = self._waited_for()
        out_of_turn = sorted(row.handle for row in self.rows() if row.handle and row.name.isdigit()) or ["nobody"]
        member = rng.choice(waited_for) if waited_for and rng.random() < 0.8 else rng.choice(out_of_turn)
        project, handle = rng.choice(handles)
        body = {"status": rng.choice(("SUCCESS",) * 5 + ("FAILURE",)), "data": member, "reason": "said so"}
        if rng.random() < 0.05:
            body = {"status": rng.choice(("firing", "resolved")), "alerts": []}
        api = rng.choice(alive)
        for _ in range(rng.choice((1, 1, 2))):
            api.requests.append(self._sender(api, project, handle, body))
        self.note(f"report {body['status']} of {member} to {handle}")

    def _sender(self, api: Any, project: str, handle: str, body: dict[str, Any]) -> Callable[[Any], None]:
        def send(_: Any) -> None:
            api.signals.native(project, HANDLE_KIND, handle, body)
            self.reported += 1

        return send

    def _steer(self) -> None:
        keys = sorted(key for (key,) in self.db.raw.execute("SELECT key FROM rollout").fetchall())
        alive = [api for api in self.apis if api.alive]
        if keys and alive:
            api, key, verb = self.rng.choice(alive), self.rng.choice(keys), self.rng.choice(VERBS)
            api.requests.append(lambda _: getattr(MetadataRollouts(api.db), verb)(key))
            self.note(f"user: {verb} {key}")

    def _jump(self, rested_at: float | None) -> None:
        """After the calm every member reports, and users let everything go on."""
        self._all_report()
        for key, state in self.db.raw.execute("SELECT key, state FROM rollout").fetchall():
            verb = {"paused": "resume", "held": "resume", "running": "approve"}.get(state)
            if verb is not None:
                try:
                    getattr(MetadataRollouts(self.apis[0].db), verb)(key)
                except Rejected as error:  # it asks for no approval, or its stack is suspended
                    self.note(f"refused: {error}")
        super()._jump(rested_at)

    def _all_report(self) -> None:
        waiting = any(row.type == CONDITION and row.status == Status.IN_PROGRESS for row in self.rows())
        members = [*self._waited_for(), *(["the first"] if waiting else [])]
        for record in [each for each in self.records() if each.kind == HANDLE_KIND]:
            for member in members:
                try:
                    self.apis[0].receiver().native(record.project, HANDLE_KIND, record.id, {"data": member})
                except Rejected as error:
                    self.note(f"refused: {error}")
