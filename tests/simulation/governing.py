"""Healing that is held back: a share of a stack at a time, and only with consent where that is wanted.

`Governors` are what users do about it, `HealingInvariants` is what must hold of every commit (ADR 0046).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from homeostat.desired.compiling import Definitions
from homeostat.model.stack_actions import CREATING
from homeostat.model.status import Action, Status
from homeostat.model.world import HEAL_SHARE, HealingPolicy
from homeostat.planner.current import current_row
from homeostat.planner.policies.healing import CONSENT
from homeostat.resources.registry import kind_of
from homeostat.services.actions import ConvergenceSettings, StackActions
from homeostat.store.stacks import stacks, views
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.users import Users

if TYPE_CHECKING:
    from tests.simulation.rows import Committed, Row, Shard, Stack

Pair = tuple["Row | None", "Row | None"]


class Governors(Part):
    """Users who say how much may be healed at a time and what only with their consent, and who give it.

    Takes: certain — whether they are in all worlds.
    """

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain

    def begin(self) -> None:
        self._dice, self._users = self.dice("governor"), self.world.part(Users)
        if self._dice.random() < 0.3 or self._certain:
            disturb = self.world.part(Disturbances).disturb_thing
            self.world.acts += [(6.0, self._govern), (3.0, self._release), (8.0, self._users.mark), (8.0, disturb)]

    def _govern(self) -> None:
        """Of a stack, mostly that it needs consent; or of one resource, whatever its stack does."""
        rng, rows = self._dice, sorted((row.stack_id, row.name) for row in self.world.rows())
        if not rows:
            return
        stack_id, name = rng.choice(rows)
        policy = rng.choice(("ask", "ask", "replace"))
        switches = ConvergenceSettings({}, {name: {"healing": policy}})
        if rng.random() < 0.7:
            share = {"share": rng.choice((0.01, 0.01, 0.5, 1.0))} if rng.random() < 0.5 else {}
            switches = ConvergenceSettings(healing={"policy": policy, **share})
        self._users.ask(lambda api: api.actions.switch(stack_id, switches), f"govern {stack_id[:6]} {switches}")

    def _release(self) -> None:
        waiting = self._waiting_for_consent()
        if waiting:
            stack_id, name = self._dice.choice(waiting)
            self.world.mended.add(stack_id)
            story = f"agree to another {name} of {stack_id[:6]}"
            self._users.ask(lambda api: api.actions.converge(stack_id, name), story)

    def _waiting_for_consent(self) -> list[tuple[str, str]]:
        """Stacks and names of what waits for consent, and has not got it; what does not stand for its name, since it
        has a successor, or was one that was rolled back, does not, though it may have to stay."""
        waiting = (row for row in self.world.rows() if needs_consent(row) and _is_open(row))
        return sorted((row.stack_id, row.name) for row in waiting if self._is_current(row))

    def _is_current(self, row: Any) -> bool:
        with self.db.read() as tx:
            stack = stacks.get(tx, row.stack_id)
            assert stack is not None
            found, _ = views.resources(tx, stack.id, [row.name])
            current = current_row([each for each in found.values() if each.name == row.name], stacks.facts(stack))
        return current is not None and current.key == row.key

    def rested(self) -> None:
        """Everything has consent. (What the service would then do is checked at rest.)"""
        waiting = self._waiting_for_consent()
        assert not waiting, f"consent could not be given to {waiting}"

    def last_word(self) -> None:
        """Consent is given to everything, as soon as it may be."""
        free = {
            stack.id
            for stack in self.world.all_stacks()
            if stack.deleted_at is None and stack.lock is None and not stack.suspended
        }
        waiting = (row for row in self.world.rows() if _is_marked(row) and _is_open(row))
        marked = {(row.stack_id, row.name) for row in waiting if self._is_current(row)}
        for stack_id, name in sorted({*self._waiting_for_consent(), *marked}):
            if stack_id in free:
                self.note(f"agree to another {name} of {stack_id[:6]} at last")
                self.world.mended.add(stack_id)
                StackActions(self.db, 900.0).converge(stack_id, name)


def needs_consent(row: Any) -> bool:
    """Has it failed so that consent is needed before another one is made? Of a row or an event."""
    return bool(row.action == Action.CHECK and row.status == Status.FAILED and CONSENT in row.reason)


def _is_open(row: Any) -> bool:
    """Is there no consent yet, and nothing made in its place?"""
    return row.replaced_by is None and row.converge_requested_at is None


def _is_marked(row: Any) -> bool:
    """Does it wait, perhaps for consent, since a user has marked it? Others may wait for it."""
    marked = row.marks is not None and row.marks.unhealthy is not None
    return marked and row.action == Action.CHECK and row.status == Status.FAILED


class Healed(NamedTuple):
    """begun — how many things were begun to be healed; full — how often as many as may be were being healed;
    consent_needed — how many needed consent; released — how many were made anew with consent."""

    begun: int
    full: int
    consent_needed: int
    released: int


class HealingInvariants:
    """Of what is being healed.

    demand — hears what must hold, and what is wrong otherwise; graph — of a stack's shard as it should be;
    consent_needed — keys of rows that need consent.
    """

    def __init__(self, demand: Callable[[bool, str], None], graph: Callable[["Stack", int], Definitions]) -> None:
        self._graph = graph
        self.consent_needed: set[str] = set()
        self._released: set[str] = set()
        self._begun_ever = 0
        self._full = 0
        self._demand = demand
        self._ruled: dict[str, dict[int, int]] = {}
        self._rolled_out: dict[str, int] = {}

    @property
    def healed(self) -> Healed:
        """How much there was to judge."""
        return Healed(self._begun_ever, self._full, len(self.consent_needed), len(self._released))

    def switched(self, before: "Stack | None", after: "Stack | None", shards: Mapping[str, "Shard"]) -> None:
        """A setting of a stack's healing holds for passes that begin after it."""
        if after is None or (
            before is not None and (before.healing, before.exceptions) == (after.healing, after.exceptions)
        ):
            return
        self._ruled[after.id] = {each.number: each.epoch for each in shards.values() if each.stack_id == after.id}

    def ended(self, before: "Stack | None", after: "Stack | None", now: "Committed") -> None:
        """What carried a mark when an update of its stack ended may be replaced for it by passes that began before."""
        if before is None or after is None or not _is_made(before) or _is_made(after):
            return
        for row in now.rows.values():
            if row.stack_id == after.id and row.marked:
                self._rolled_out[row.key] = now.shards[f"{row.stack_id}/{row.shard}"].epoch

    def judge(self, changed: Iterable[Pair], now: "Committed") -> None:
        """The rows that one commit has changed, before and after; now — what is stored since."""
        begun: dict[str, list[Row]] = {}
        pairs = list(changed)
        before = {one.key: one for one, _ in pairs if one is not None}
        for one, other in pairs:
            if other is None:
                continue
            predecessor = before.get(other.replaces or "") if one is None else None
            inherited = predecessor is not None and predecessor.being_healed
            if other.being_healed and not inherited and (one is None or not one.being_healed):
                begun.setdefault(other.stack_id, []).append(other)
        for stack_id, rows in begun.items():
            self._begun(now.stacks[stack_id], rows, before, now)

    def _begun(self, stack: "Stack", begun: "list[Row]", before: "Mapping[str, Row]", now: "Committed") -> None:
        mine = [row for row in now.rows.values() if row.stack_id == stack.id]
        agreed = {row.key for row in begun if self._agreed(row, before, now)}
        self._begun_ever += len(begun)
        for row in begun:
            if not self._rules(stack, row, now):
                continue
            old = _replaced_by(row, before, now)
            if old is not None and requires_consent(stack, row.name):  # what is mended in place is not destroyed
                consent = row.key in agreed or self._is_rolled_out(stack, old, now)
                self._demand(consent, f"{row.name} of {stack.name} is made anew without consent: {row}")
                self._released.add(row.key)
        wanted = {name: each for number in range(stack.shards) for name, each in self._graph(stack, number).items()}
        # What is to go takes no place.
        beside = [row for row in mine if row.being_healed and row.key not in agreed and row.name in wanted]
        healed = sum(not any(self._requires(stack, row, each) for each in begun) for row in beside)
        # Of a group of several shards each pass knows the number of its members, and not which of them are things.
        counted = {row.name for row in mine if kind_of(row.type) or stack.shards > 1}
        # What has yet to be made counts as well.
        counted |= {name for name, each in wanted.items() if kind_of(each.type) or stack.shards > 1}
        allowed = max(1, int(share_of(stack) * len(counted) + 1e-9))
        self._full += healed == allowed
        if all(self._rules(stack, row, now) for row in begun) and agreed != {row.key for row in begun}:
            names = [row.name for row in mine if row.being_healed]
            self._demand(healed <= allowed, f"{names} of {stack.name} are being healed, and {allowed} may be at a time")

    def _requires(self, stack: "Stack", row: "Row", other: "Row") -> bool:
        """Does it wait for the other one to be there? Then it does not count beside that one."""
        graph, names = self._graph(stack, row.shard), {row.name}
        for _ in graph:
            names |= {each for name in names if name in graph for each in graph[name].requires}
        return other.name in names and other.name != row.name

    def _is_rolled_out(self, stack: "Stack", old: "Row", now: "Committed") -> bool:
        """Has a user converged the whole stack, or updated it where the old one carries a mark? An update that fails
        meanwhile, in another shard say, still went on when this was decided."""
        shard = now.shards[f"{stack.id}/{old.shard}"]
        unsettled = shard.settled_revision < stack.revision
        goes_on = unsettled or stack.status == Status.IN_PROGRESS or self._rolled_out.get(old.key) == shard.epoch
        return (unsettled and stack.look_from is not None) or (goes_on and old.marked)

    def _agreed(self, row: "Row", before: "Mapping[str, Row]", now: "Committed") -> bool:
        """Has a user converged it by name?"""
        found = (before.get(key) or now.rows.get(key) for key in (row.key, row.replaces or ""))
        return any(each is not None and each.converge_requested_at is not None for each in found)

    def _rules(self, stack: "Stack", row: "Row", now: "Committed") -> bool:
        """Was it decided for the newest revision, by a shard that was claimed after the stack's policy was set?"""
        if row.revision != stack.revision:
            return False
        epoch = self._ruled.get(stack.id, {}).get(row.shard, -1)
        return now.shards[f"{stack.id}/{row.shard}"].epoch > epoch


def _replaced_by(row: "Row", before: "Mapping[str, Row]", now: "Committed") -> "Row | None":
    """What it is made in the place of: what it replaces, or itself, where nothing was made for it and it was marked
    then. None for what is not made now."""
    if row.action not in (Action.INIT, Action.CREATE):
        return None
    itself = before.get(row.key)
    return itself if itself is not None and itself.marked else now.rows.get(row.replaces or "")


def _is_made(stack: "Stack") -> bool:
    """Is it being made or changed?"""
    return stack.status == Status.IN_PROGRESS and stack.action in CREATING


def requires_consent(stack: "Stack", name: str) -> bool:
    exception = json.loads(stack.exceptions or "{}").get(name, {}).get("healing")
    return bool((exception or json.loads(stack.healing or "{}").get("policy")) == HealingPolicy.ASK)


def share_of(stack: "Stack") -> float:
    return float(json.loads(stack.healing or "{}").get("share") or HEAL_SHARE)
