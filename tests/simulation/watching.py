"""Safety: every committed state of the database, and every deletion requested of a cloud, is judged on the spot.

What is wrong is noted, never raised here: it would be raised inside the process that is watched, which may catch it.
"""

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import greenlet

from homeostat.builtin.reports import SIGNAL
from homeostat.convergence.jobs.conductor import DEADLY
from homeostat.convergence.members.moves import ROLLOUT
from homeostat.desired.compiling import Definitions
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Identity
from homeostat.model.stack_actions import MAINTENANCE, stack_may
from homeostat.model.status import Action, DeletionPolicy, State, Status, joined, resource_may
from homeostat.model.world import KeepPolicy
from homeostat.planner.current import current_row
from homeostat.planner.lifecycle.delete import RELEASED, REPLACED
from homeostat.planner.lifecycle.recovery_state import REPORTER
from homeostat.planner.states.snapshot_state import TOO_LATE
from homeostat.store.database import Transaction
from homeostat.store.stacks import revisions, stacks, views
from tests.simulation.governing import HealingInvariants, needs_consent
from tests.simulation.rows import Committed, Event, Row, Shard, Stack
from tests.simulation.templates import WITH_DATA
from tests.simulation.watched import WATCHED, WatchedCloud, WatchedDatabase

BORN: State = (Action.INIT, Status.COMPLETE)
BEGUN = ((Action.CREATE, Status.IN_PROGRESS), (Action.UPDATE, Status.IN_PROGRESS))
KEPT = "kept"
UNMOVED = re.compile(
    r"\w+ paused until Hook [\w-]+ is cleared|Hook [\w-]+ is cleared|Failure occurred while waiting\."
    r"|Cannot signal resource during \w+|(?P<refused>update|replace) is restricted for resource\."
)
"""Reasons of events that show no change of state."""
WELL = ("active", "available")
LOCKED = (Action.LOCK, Status.COMPLETE)


Kind = TypeVar("Kind")
Changes = Mapping[str, tuple[Kind | None, Kind | None]]
"""What has changed: name -> before and after; None where there is nothing."""

UPDATING = (Action.UPDATE, Action.ROLLBACK)


class Watcher:
    """Takes: db, clouds — to be watched from now on.

    wrong — what was seen that must not be; retained — handles that a deletion policy let go of; let_go — keys of rows
    whose stacks let go of them; spared — tokens that such rows had last: what turns up under one stays; promised —
    handles that documents of abandoned stacks name, each with the action of its event; deletions, commits — those
    judged; snapshots — deletions that had to wait for one; renewed — resources that were replaced for a mark, by key;
    maintained — how often stacks were suspended, resumed, locked or unlocked; held — how many commits were judged while
    a stack was locked; healing — what is judged of healing; went — ids and reasons of stacks that had failed when
    something went that could not be deleted, or when what had failed its check did not any more.
    """

    def __init__(self, db: WatchedDatabase, clouds: Sequence[WatchedCloud]) -> None:
        self.wrong: list[str] = []
        self.retained: set[str] = set()
        self.let_go: set[str] = set()
        self.spared: set[str] = set()
        self.went: set[tuple[str, str]] = set()
        self._keys: dict[str, set[str]] = defaultdict(set)
        self.promised: dict[str, str] = {}
        self.deletions = 0
        self.snapshots = 0
        self.commits = 0
        self.renewed: set[str] = set()
        self.maintained = 0
        self.held = 0
        self._done: set[tuple[str, str]] = set()
        self._db = db
        self._clouds = clouds
        self._seq = 0
        self._passed_over: set[str] = set()
        self._intended: dict[tuple[greenlet.greenlet, str], str] = {}
        self._refused: set[tuple[str, int]] = set()
        self._now = Committed({}, {}, {})
        self._graphs: dict[tuple[str, int, int], Definitions] = {}
        self.healing = HealingInvariants(self._demand, self._graph)
        db.on_commit = self.committed
        for cloud in clouds:
            cloud.on_delete = self.deleting

    def counts(self) -> dict[str, int]:
        """How much there was to judge."""
        of_watcher = {"deletions": self.deletions, "copied first": self.snapshots, "renewed": len(self.renewed)}
        kept = {"maintained": self.maintained, "judged while locked": self.held}
        healed = {f"healed.{name}": number for name, number in self.healing.healed._asdict().items()}
        return {**of_watcher, **kept, **healed}

    # -- commits -----------------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Compare what was written now with what was before; the new events must show exactly what happened."""
        self.commits += 1
        shards = self._read(Shard, "shard")
        rows, all_stacks = self._read(Row, "resource"), self._read(Stack, "stack")
        events = self._events()
        for before, after in shards.values():
            if after is not None:
                self._shard(before, after)
        if rows or all_stacks or events:
            self._compare(rows, all_stacks, events)

    def _read(self, kind: Any, table: str) -> dict[str, tuple[Any, Any]]:
        """Rows of a table that have changed: name -> before and after. What is stored now is known afterwards."""
        touched = self._db.touched[table]
        if not touched:
            return {}
        known: dict[str, Any] = getattr(self._now, f"{kind.__name__.lower()}s")
        marks = ", ".join("?" * len(touched))
        name, columns = WATCHED[table], ", ".join(kind._fields)
        chosen = f"SELECT {name}, {columns} FROM {table} WHERE {name} IN ({marks})"
        found = {values[0]: kind(*values[1:]) for values in self._db.raw.execute(chosen, list(touched))}
        changed = {}
        for each in sorted(touched):
            before, after = known.get(each), found.get(each)
            if before != after:
                changed[each] = before, after
                if after is None:
                    del known[each]
                else:
                    known[each] = after
        touched.clear()
        return changed

    def _events(self) -> list[Event]:
        columns = ", ".join(Event._fields)
        chosen = f"SELECT {columns} FROM event WHERE seq > ? ORDER BY seq"
        events = [Event(*values) for values in self._db.raw.execute(chosen, (self._seq,))]
        (self._seq,) = self._db.raw.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()  # perhaps purged
        return events

    def _compare(self, rows: Changes[Row], all_stacks: Changes[Stack], events: Sequence[Event]) -> None:
        events_of: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            events_of[event.key or event.stack_id].append(event)
            if event.action == Action.DELETE and event.reason.startswith((KEPT, REPLACED, TOO_LATE)) and event.handle:
                self.retained.add(event.handle)
            if event.key and needs_consent(event):
                self.healing.consent_needed.add(event.key)
            if event.action == Action.DELETE and event.reason == RELEASED:
                self.let_go.add(event.key)
                self.spared |= {row.token for row in rows[event.key] if row is not None and row.token}
        for row in (row for pair in rows.values() for row in pair if row is not None):
            self._keys[row.stack_id].add(row.key)
        for stack_id, (_, stack) in all_stacks.items():
            if stack is not None and stack.spares == KeepPolicy.ALL:
                self.let_go |= self._keys[stack_id]
        known = self._now.rows
        self.held += any(stack.state == LOCKED for stack in self._now.stacks.values())
        for key in sorted(rows.keys() | {event.key for event in events if event.key}):
            before, after = rows.get(key, (known.get(key), known.get(key)))
            self._row(before, after, events_of.get(key, ()))
            self._order(after, events_of.get(key, ()))
            self._lost(before, after)
            self._unmoved(all_stacks, before, after)
            self._went(before, after)
        for stack_before, stack_after in all_stacks.values():
            self.healing.switched(stack_before, stack_after, self._now.shards)
            self.healing.ended(stack_before, stack_after, self._now)
        self.healing.judge(rows.values(), self._now)
        self._removed_last(rows)
        for before, after in rows.values():
            if after is not None and after.state == (Action.DELETE, Status.IN_PROGRESS):
                self._intended[greenlet.getcurrent(), after.key] = after.deletion_policy
            if before is not None and after is not None and self._passes_over(before, after):
                self._passed_over.add(before.replaced_by or "")
        for key in sorted(
            {key for pair in rows.values() for row in pair if row for key in (row.key, row.replaces or "")}
        ):
            self._succession(known.get(key))
        for stack_id in sorted(all_stacks.keys() | {event.stack_id for event in events if not event.key}):
            stack = self._now.stacks.get(stack_id)
            self._stack(*all_stacks.get(stack_id, (stack, stack)), events_of.get(stack_id, ()))

    def _removed_last(self, rows: Changes[Row]) -> None:
        """What has data and is removed by an update goes once all that it makes and changes is done.

        But for what is broken and deleted first, and what is in the way of something that goes already or has to let go
        (ADR 0094)."""
        for before, after in rows.values():
            if before is None or after is None or Action.DELETE in (before.action, before.status) or not after.handle:
                continue
            stack = self._now.stacks[after.stack_id]
            updating = stack.action in UPDATING and stack.status == Status.IN_PROGRESS
            if after.state != (Action.DELETE, Status.IN_PROGRESS) or after.type not in WITH_DATA or not updating:
                continue
            if not any(after.handle in cloud.things() for cloud in self._clouds):
                continue
            beside = [self._now.rows[key] for key in self._keys[stack.id] if key in self._now.rows]
            beside = [row for row in beside if row.shard == after.shard and row.key != after.key]
            first = any(row.replaces == after.key and row.action == Action.INIT for row in beside)
            going = any(row.action == Action.DELETE or row.lets_go for row in beside)
            if first or going or after.revision != stack.revision:
                continue
            done = {row.name for row in beside if row.done or row.marked}
            unfinished = self._graph(stack, after.shard).keys() - done
            self._demand(not unfinished, f"{stack.name}.{after.name} goes before {sorted(unfinished)} are done")

    def _passes_over(self, before: Row, after: Row) -> bool:
        """Does its successor stand for its name no more? It does so itself again, or one that a newer revision had made
        since that one failed."""
        if not before.replaced_by or after.replaced_by == before.replaced_by:
            return False
        old, new = (self._now.rows.get(each.replaced_by or "") for each in (before, after))
        if old is None or new is None:
            return True
        return old.state[1] == Status.FAILED and old.revision < new.revision

    def _is_note(self, row: Row | None, event: Event) -> bool:
        """Does it show no change of state? That something is restricted is reported once an update."""
        found = UNMOVED.fullmatch(event.reason)
        stack = self._now.stacks.get(row.stack_id) if row is not None else None
        if found is not None and found["refused"] and stack is not None and stack.action != Action.ROLLBACK:
            assert row is not None
            refusal = (row.key, stack.revision)
            self._demand(refusal not in self._refused, f"{row.name} is refused the same twice: {event}")
            self._refused.add(refusal)
        return found is not None

    def _row(self, before: Row | None, after: Row | None, events: Sequence[Event]) -> None:
        if after is not None and after.done:
            self._done.add((after.stack_id, after.name))
        if before == after and not events:
            return
        name = after.name if after is not None else before.name if before is not None else events[0].key
        quiet = (each for each in events if each.action not in (SIGNAL, ROLLOUT))
        events = [event for event in quiet if not self._is_note(before, event)]
        if before is None and after is None and not events:
            return  # a signal came to what has gone meanwhile
        walk = [before.state if before is not None else BORN, *(event.state for event in events)]
        for one, other in itertools.pairwise(walk):
            self._demand(resource_may(one, other), f"{name} went from {joined(*one)} to {joined(*other)}")
        end = after.state if after is not None else (Action.DELETE, Status.COMPLETE)
        self._demand(walk[-1] == end, f"{name} is {joined(*end)}, its events say {[joined(*each) for each in walk]}")
        begun = [(one, other) for (one, _), (other, status) in itertools.pairwise(walk) if status != Status.FAILED]
        if before is not None and (Action.CHECK, Action.CREATE) in begun:
            self._demand(before.handle == "", f"{name} was there, and is made again in its row: {before}")
        if before is not None and after is not None:
            self._demand(after.version >= before.version, f"{name} went from version {before.version} to {after}")
            again = any(one == other for one, other in itertools.pairwise(walk))
            # What failed its check before it was marked fails it as before when the mark ends, which it does once.
            newer = after.revision > before.revision or before.marked or after.marked
            self._demand(newer or not again, f"{name} fails over and over: {before}, {events}")
            lingers = after.state == (Action.DELETE, Status.COMPLETE)
            held = lingers or before.handle in ("", after.handle, *self.retained, *self.promised)
            self._demand(held, f"{name} lost hold of {before.handle}: {after}")

    def _succession(self, old: Row | None) -> None:
        """What is marked has one successor at a time, however often workers die in the middle of it (MU)."""
        if old is None or not old.marked:
            return
        rows = (row for row in self._now.rows.values() if row.key not in self._passed_over)
        alive = [row for row in rows if row.replaces == old.key and row.action != Action.DELETE]
        if alive:
            self.renewed.add(old.key)
        self._demand(len(alive) <= 1, f"{old.name} is marked, and has several successors: {old}, {alive}")

    def _lost(self, before: Row | None, after: Row | None) -> None:
        """What was absent, so that another was made in its place, is never deleted for that: it may come back."""
        if before is None or after is None or not before.lost or before.action == Action.DELETE:
            return
        stack = self._now.stacks.get(after.stack_id)
        newest = stack is not None and after.revision == stack.revision
        if stack is not None and newest and after.action == Action.DELETE and stack.action != Action.DELETE:
            wanted = after.name in self._graph(stack, after.shard)
            self._demand(not wanted, f"{after.name} was absent for a while, and is deleted: {after}")

    def _unmoved(self, all_stacks: Changes[Stack], one: Row | None, other: Row | None) -> None:
        """Nothing becomes of what is in a locked stack, or in one nested in it (LK2)."""
        row = one if one is not None else other
        stack = self._was(all_stacks, row.stack_id) if row is not None else None
        if row is None or stack is None:
            return
        root, now = self._was(all_stacks, stack.root_id), self._now.stacks.get(stack.root_id)
        if root is None or now is None or root.state != LOCKED or (now.state, now.revision) != (LOCKED, root.revision):
            return
        same = one is not None and other is not None and (one.state, one.handle) == (other.state, other.handle)
        if stack.state != LOCKED:  # a nested one that has failed: what goes on there comes to its end
            same |= (
                other is None or other.status != Status.IN_PROGRESS or (one is not None and one.status == other.status)
            )
        self._demand(same, f"{row.name} is in the locked stack {root.name}, and went from {one} to {other}")

    def _went(self, before: Row | None, after: Row | None) -> None:
        """Remember what a stack says whose resource could not be deleted, and has gone since, or had failed its check
        in the middle of an action, and does not any more."""
        stack = self._now.stacks.get(before.stack_id) if before is not None else None
        if before is None or stack is None or stack.status != Status.FAILED:
            return
        gone = after is None and before.state == (Action.DELETE, Status.FAILED)
        mended = before.state == (Action.CHECK, Status.FAILED) and (after is None or after.status != Status.FAILED)
        named = re.compile(rf"Resource CHECK failed: \w+: resources\.{re.escape(before.name)}[:.[]")
        if gone or (mended and named.match(stack.reason)):
            self.went.add((stack.id, stack.reason))

    def _was(self, changes: Changes[Stack], stack_id: str) -> Stack | None:
        """The stack before these changes."""
        known = self._now.stacks.get(stack_id)
        return changes.get(stack_id, (known, known))[0]

    def _order(self, row: Row | None, events: Sequence[Event]) -> None:
        """A resource is begun when all that it requires is done (CV4).

        What is lost in a stack that has failed is healed beside what is there, though that has failed (ADR 0090). What
        is begun and done in one commit has no mark of that any more: what it replaces says it."""
        if row is None or not any(event.state in BEGUN for event in events):
            return
        rows, all_stacks, _ = self._now
        stack = all_stacks[row.stack_id]
        if row.revision != stack.revision or row.action == Action.DELETE:
            return
        definition = self._graph(stack, row.shard).get(row.name)
        lost = rows.get(row.replaces or "")
        replaces_lost = lost is not None and lost.state == (Action.CHECK, Status.FAILED)
        healing = replaces_lost or (row.marks is not None and "healing" in json.loads(row.marks))
        heals = stack.status == Status.FAILED and healing
        for name in definition.requires if definition is not None else ():
            done = [each for each in rows.values() if each.stack_id == row.stack_id and each.name == name]
            kind = self._graph(stack, row.shard)[name].type
            well = any((each.done or each.marked or (heals and each.handle)) and each.type == kind for each in done)
            self._demand(well, f"{row.name} is begun, but {name}, which it requires, is {done}")

    def _stack(self, before: Stack | None, after: Stack | None, events: Sequence[Event]) -> None:
        if before == after and not events:
            return
        if after is None:
            gone = before is not None and before.deleted_at is not None
            self._demand(gone, f"a stack that lives was purged: {before}")
            return
        walk = [before.state if before is not None else None, *(event.state for event in events)]
        for one, other in itertools.pairwise(walk):
            assert other is not None
            self._demand(stack_may(one, other), f"stack {after.name} went from {one} to {joined(*other)}")
        self._demand(walk[-1] == after.state, f"stack {after.name} is {after.state}, its events say {walk}")
        if before is not None:
            self._demand(after.revision >= before.revision, f"stack {after.name}: revision went back: {after}")
            self._demand(before.deleted_at is None, f"stack {after.name} was deleted, and changes: {after}")
        if after.status == Status.COMPLETE and (before is None or before.status != Status.COMPLETE):
            self._complete(after)

    def _complete(self, stack: Stack) -> None:
        """A stack that turns COMPLETE is: all of it has come to rest at its newest revision (CV6)."""
        rows, _, shards = self._now
        if stack.action in MAINTENANCE:
            self.maintained += 1
            return
        self._demand(stack.complete_revision == stack.revision, f"{stack.name} completed another revision: {stack}")
        mine = [row for row in rows.values() if row.stack_id == stack.id]
        if stack.action == Action.DELETE:
            self._demand(not mine, f"{stack.name} is deleted, and has {mine}")
            return
        for number in range(stack.shards):
            shard = shards[f"{stack.id}/{number}"]
            well = shard.failures == 0 or stack.action == Action.SNAPSHOT  # of which what is marked is no part
            settled = shard.settled_revision == stack.revision and well
            self._demand(settled, f"{stack.name} is COMPLETE, its shard is not: {shard}")
            newest = (Action.SNAPSHOT, Status.FAILED, stack.revision)
            lost = [row for row in mine if (row.action, row.status, row.revision) == newest]
            self._demand(stack.action != Action.SNAPSHOT or not lost, f"{stack.name} has a snapshot without {lost}")
            for name in self._graph(stack, number):
                found = [row for row in mine if row.name == name]
                was_done = (stack.id, name) in self._done  # what broke since is being healed, as in a stack at rest
                # What was made, and is unhealthy by its policy, is recovered beside the action (ADR 0072).
                was_done = was_done or any(row.handle and REPORTER in (row.marks or "") for row in found)
                self._demand(was_done, f"{stack.name} is COMPLETE, its {name} is {found}")

    def _shard(self, before: Shard | None, after: Shard) -> None:
        self._demand(after.reason in ("", DEADLY), f"a pass failed: {after.reason}")  # workers do die here
        stack = self._now.stacks[after.stack_id]
        self._demand(after.settled_revision <= stack.revision, f"{after} is ahead of its stack at {stack.revision}")
        if before is not None:
            grown = (after.epoch, after.settled_revision) >= (before.epoch, before.settled_revision)
            self._demand(grown, f"a shard went back from {before} to {after}")

    # -- deletions ---------------------------------------------------------------------------------------------------

    def deleting(self, cloud: WatchedCloud, kind: str, handles: Sequence[str]) -> None:
        """Nothing that is wanted and well is deleted, not even by a worker that wakes up too late."""
        with self._db.read() as tx:
            for handle in handles:
                self.deletions += 1
                self._judge_deletion(tx, cloud, kind, handle)

    def _judge_deletion(self, tx: Transaction, cloud: WatchedCloud, kind: str, handle: str) -> None:
        things = cloud.things(kind)
        if handle in things:
            self._judge_data(cloud, handle)
        held = any(row.handle == handle for row in self._now.rows.values())
        to_be_deleted = self.promised.get(handle, Action.DELETE) == Action.DELETE  # a request may have been on its way
        self._demand(held or to_be_deleted, f"{handle} was let go of, and is deleted")
        if handle not in things or things[handle].get("status", WELL[0]) not in WELL:
            return
        for mine in [row for row in self._now.rows.values() if row.handle == handle]:
            stack = stacks.get(tx, mine.stack_id)
            if stack is None:
                continue
            found, _ = views.resources(tx, stack.id, [mine.name])
            current = current_row(found.values(), stacks.facts(stack))
            if current is None or current.key != mine.key or current.status != Status.COMPLETE:
                continue
            if current.action == Action.INIT:  # what is only to be adopted may be on its way out
                continue
            definition = self._graph(stack, current.shard).get(current.name)
            wanted = definition is not None and definition.type == current.type
            self._demand(not wanted, f"{stack.name}.{current.name} is wanted and well, and {handle} is deleted")

    def _judge_data(self, cloud: WatchedCloud, handle: str) -> None:
        """What was complete once, and whose policy is Snapshot, has one of its own when it is deleted (CV12): one of
        its whole stack goes when a user deletes that. A request is judged by the policy with which its sender stored
        the intent: a newer one may come while it is on its way."""
        for mine in [row for row in self._now.rows.values() if row.handle == handle]:
            policy = self._intended.pop((greenlet.getcurrent(), mine.key), mine.deletion_policy)
            if policy == DeletionPolicy.SNAPSHOT and mine.changed > 0:
                self.snapshots += 1
                words = [each["status"] for each in cloud.snapshots(handle) if "-r" not in each["token"]]
                self._demand("available" in words, f"{mine.name} is deleted without a snapshot of {handle}: {words}")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _graph(self, stack: Any, shard: int) -> Definitions:
        place = (stack.id, stack.revision, shard)
        if place not in self._graphs:
            with self._db.read() as tx:
                desired = revisions.content_of(tx, stack.id, stack.revision)
            self._graphs[place] = compile_graph(desired, Identity(stack.id, stack.name, stack.project), shard)
        return self._graphs[place]

    def _demand(self, condition: bool, otherwise: str) -> None:
        if not condition:
            self.wrong.append(otherwise)
