"""Deletion of resources that should not exist, as their deletion policies say (CV12, CV14). Pure."""

from typing import Any

from homeostat.model.observed import Condition, Presence, Remedy
from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import maintenance_state, snapshot_state
from homeostat.planner.lifecycle import adoption_data, hooks
from homeostat.planner.lifecycle.intents import Intents
from homeostat.planner.lifecycle.names import physical_name, token
from homeostat.planner.retry import conditions
from homeostat.planner.retry.backoff import delay_s
from homeostat.planner.scope import LOCKED, NEVER_SEEN, thing_of
from homeostat.resources import builtin_kinds
from homeostat.resources.base import MaintenanceMethod
from homeostat.resources.missing import unknown
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import is_known, kind_of, type_of
from homeostat.templates.registry import POST_DELETE, PRE_DELETE

KEPT = "kept, as its deletion policy says"
LET_GO = "kept: its stack lets go of it as it is"
GONE = "it was not found, and another was made in its place"
STAYS = "kept, since it came back after another was made in its place: delete it yourself if you do not need it"
LOST = "lost"
"""Mark of a row whose thing was absent, so that another one was made: `{"at": time}`."""


class Departures(Intents):
    """Decides about what replacement and removal leave behind, and about everything in a stack that is deleted."""

    def drop(self, row: Resource, now: float) -> Step | Waiting:
        """Decide about a leftover that nothing uses any more (CV12)."""
        if self._is_spared(row):
            # A row that lingers at its last hook: its thing is deleted, and that was reported.
            gone = row.deleting and row.status == Status.COMPLETE
            told = [] if gone else [outcome.event_of(row, Status.COMPLETE, LET_GO, Action.DELETE)]
            stays = "" if gone else row.handle
            return Step(Verb.RECORD, row, LET_GO, removed=True, events=told, spared=row.token, retained=stays)
        overtaken = hooks.interrupted(self.world, row)
        if overtaken is not None:
            return overtaken
        policy = self._policy_of(row)
        if policy != row.deletion_policy:
            # Another policy may lead to another act, so the backoff of the last one does not count.
            row.deletion_policy, row.due_at = policy, None
        if row.busy and row.due_at is not None and row.due_at > now and row.acted_at is None:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        if row.deleting:
            return self._leaving(row, now)
        # A creation without an answer may have made something, which has to be known before the row is forgotten.
        if row.busy and row.action in (Action.CREATE, Action.ADOPT) and row.acted_at is None:
            return self._find(row, now) if row.token else self._forget(row, outcome.CHANGED)
        if is_lost(row) and self._is_wanted(row):
            return self._drop_lost(row, now)
        return self._stop(row, PRE_DELETE, now) or self._let_go(row, now)

    def _is_wanted(self, row: Resource) -> bool:
        return row.name in self.world.definitions and self.world.stack.action != Action.DELETE

    def _drop_lost(self, row: Resource, now: float) -> Step | Waiting:
        """Decide about a row whose thing was absent, and whose replacement is done.

        The thing is looked for a last time, and never deleted: if it came back it may hold data (ADR 0045).
        """
        if row.key not in self.world.looked:
            if row.due_at is not None and row.due_at > now:
                return Waiting(row.name, Why.UNSEEN, (), GONE, row.updated_at, row.due_at, row.key)
            return Step(Verb.OBSERVE, row, GONE)
        there = self.world.seen[row.key].observation.present
        return self._forget(row, STAYS if there else GONE, stays=there)

    def _is_spared(self, row: Resource) -> bool:
        """Return whether the thing stays, since its stack is abandoned, or was to adopt it.

        What was made here carries a token. A nested stack is deleted in any case, and lets go of its own things. So are
        things of the service that users could not find or delete without the stack. A thing that is still to be taken
        over does not belong to the stack yet, and stays whatever the stack does.
        """
        stack, kind = self.world.stack, kind_of(row.type)
        mine = kind == NestedStack.kind or kind in builtin_kinds.KINDS - builtin_kinds.LISTED
        if adoption_data.of(row) is not None and (row.action == Action.INIT or not mine):
            return True
        if stack.spares is None or mine:
            return False
        taken_over = row.action == Action.ADOPT if kind in builtin_kinds.LISTED else row.token == ""
        return stack.abandoned or taken_over

    def _stop(self, row: Resource, hook: str, now: float) -> Step | Waiting | None:
        """Stop at a hook of the row's deletion; what was never made does not stop."""
        there = row.action != Action.INIT and hooks.stops_leaving(row, hook)
        return hooks.stop(self.world, row, hook, now) if there else None

    def _find(self, row: Resource, now: float) -> Step | Waiting:
        """Look for what a creation without an answer has made, once a cloud that lists late would show it."""
        visible_at = row.updated_at + self.world.listing_lag_s
        if visible_at > now:
            return Waiting(
                row.name, Why.BACKOFF, (), "its creation may have begun", row.updated_at, visible_at, row.key
            )
        return Step(Verb.FIND, row)

    def _policy_of(self, row: Resource) -> str:
        """Return the deletion policy that holds for a row.

        That is the one it was last given. In the middle of its deletion the policy of a newer revision counts instead
        (CV14), and Retain in the newest revision counts in any case.
        """
        if self.world.stack.abandoned and kind_of(row.type) == NestedStack.kind:
            # An abandoned nested stack has to be asked to let go of its own things, which is a deletion to it.
            return DeletionPolicy.DELETE
        if row.name in self.world.policies:
            return self.world.policies[row.name]
        definition = self.world.definitions.get(row.name)
        if definition is None or not row.deleting or row.deletion_policy == DeletionPolicy.RETAIN:
            return row.deletion_policy
        newer = row.revision < self.world.stack.revision or definition.deletion_policy == DeletionPolicy.RETAIN
        return definition.deletion_policy if newer else row.deletion_policy

    def _let_go(self, row: Resource, now: float) -> Step:
        """Begin, or begin again, what the deletion policy says; what the stack has locked is unlocked before that."""
        if LOCKED in (row.marks or {}) and may_exist(row) and is_known(row.type):
            return self._unlock(row, now)
        if _kept(row):
            return self._keep(row)
        if not may_exist(row):
            return self._forget(row, outcome.CHANGED)
        if not is_known(row.type):
            return self._give_up(row, now)
        if snapshot_state.needed(row, row.deletion_policy):
            return self._snapshot(row, now)
        return self._delete(row, now)

    def _keep(self, row: Resource) -> Step:
        """Retain the thing, and forget its row.

        If the thing is not known yet, it is searched for first, so that the event names what stays.
        """
        if row.handle == "" and may_exist(row):
            return Step(Verb.FIND, row)
        return self._forget(row, KEPT, stays=True)

    def _unlock(self, row: Resource, now: float) -> Step:
        """Unlock a thing before its deletion, after locking or unlocking the stack has failed."""
        kind = type_of(row.type)
        treatment = kind.maintenance_method(thing_of(self.world, row, kind), Action.UNLOCK)
        if treatment is None:
            # Its type cannot be unlocked (any more).
            row.marks = maintenance_state.without_mark(row, Action.UNLOCK)
            return self._let_go(row, now)
        step = self._treatment_step(row, treatment)
        self._depart(step, maintenance_state.UNLOCK_FIRST)
        row.intent = {"operation": maintenance_state.UNLOCK}
        self._ask_at(row, now)
        return step

    def _treatment_step(self, row: Resource, treatment: MaintenanceMethod) -> Step:
        if treatment.operation:
            return Step(Verb.OPERATE, row, row.reason, operation=treatment.operation)
        spec = {**self._asked(row), **treatment.fields}
        return Step(Verb.UPDATE, row, row.reason, spec, changed=tuple(treatment.fields))

    def _give_up(self, row: Resource, now: float) -> Step:
        """Fail the deletion of a thing whose type is not known any more; let go of it when that is requested again."""
        if row.deleting and row.failed:
            return self._forget(row, f"{row.handle} is left as it is: its type {row.type} is not known any more")
        reason = f"{unknown(row.type)}, or delete {row.handle} yourself and ask again: then it is let go of"
        return self._failed_step(row, reason, now, Action.DELETE)

    def _leaving(self, row: Resource, now: float) -> Step | Waiting:
        """Continue a deletion that has begun; let go of the thing at once if a newer revision keeps it (CV14)."""
        if row.status == Status.COMPLETE:
            last = self._stop(row, POST_DELETE, now)
            return last or Step(Verb.RECORD, row, row.reason, removed=True)
        if _kept(row):
            return self._keep(row)
        if row.failed:
            # No newer revision has asked for the deletion again.
            if row.revision == self.world.stack.revision or not self.unsettled:
                waiting = Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
                return self._went_by_itself(row, now) or self._release_share(row) or waiting
            return self._let_go(row, now)
        # Another policy since the snapshot was requested: it is not waited for.
        if snapshot_state.asked(row) and not snapshot_state.needed(row, row.deletion_policy):
            return self._delete(row, now)
        if row.acted_at is None:
            # The outcome of the last request is not known; deleting, unlocking and the snapshot may all be requested
            # again.
            return self._delete(row, now) if snapshot_state.made(row) else self._let_go(row, now)
        return self._snapshotting(row, now) if snapshot_state.asked(row) else self._going(row, now)

    def _went_by_itself(self, row: Resource, now: float) -> Step | Waiting | None:
        """Forget the row of a thing whose deletion failed and that does not exist any more."""
        if not conditions.is_gone(self.world, row):
            return None
        return self._missed(row, now) or self._forget(row, snapshot_state.farewell(row, outcome.CHANGED))

    def _release_share(self, row: Resource) -> Step | None:
        """Take the mark of healing off a replacement that waits for a deletion that failed.

        It cannot be made for now, and must not keep other things from being healed.
        """
        heir = self.world.rows.get(row.replaced_by or "")
        if heir is None or not outcome.is_being_healed(heir):
            return None
        outcome.no_longer_healed(heir)
        return Step(Verb.RECORD, row, row.reason, also=[heir])

    def _going(self, row: Resource, now: float) -> Step | Waiting:
        verdict = type_of(row.type).judge(thing_of(self.world, row), now)
        if verdict.condition is Condition.ABSENT:
            return self._forget(row, snapshot_state.farewell(row, outcome.CHANGED))
        if verdict.remedy is Remedy.MANUAL and row.revision < self.world.stack.revision:
            # That failure was the answer to an earlier revision.
            return self._let_go(row, now)
        if verdict.remedy is Remedy.MANUAL:
            return self._failed_step(row, verdict.reason, now)
        return Waiting(row.name, Why.BUILDING, (), "it is being deleted", row.updated_at, verdict.due_at, row.key)

    def _forget(self, row: Resource, reason: str, *, stays: bool = False) -> Step:
        handle = row.handle if stays else ""
        record = outcome.removed(self.world, row, reason)
        return Step(Verb.RECORD, row, reason, removed=record.removed, events=record.events, retained=handle)

    def _delete(self, row: Resource, now: float) -> Step:
        """Intend the deletion."""
        step = Step(Verb.DELETE, row)
        # A snapshot counts for the deletion it was made for; one requested again, after a failure, makes its own.
        if not snapshot_state.made(row) or row.failed:
            row.intent = None
        self._depart(step, snapshot_state.farewell(row, outcome.CHANGED))
        self._ask_at(row, now)
        return step

    def _depart(self, step: Step, reason: str) -> None:
        """Begin the deletion, or continue it; only the beginning is an event."""
        row = step.row
        row.reason = reason
        if row.deleting and row.busy:
            return
        row.action, row.status = Action.DELETE, Status.IN_PROGRESS
        row.attempts = row.retries = 0
        step.events.append(outcome.event_of(row, Status.IN_PROGRESS, reason))

    def _ask_at(self, row: Resource, now: float) -> None:
        row.revision = self.world.stack.revision
        row.acted_at = row.due_at = None
        row.updated_at = now

    # -- the snapshot ------------------------------------------------------------------------------------------------

    def _snapshot(self, row: Resource, now: float) -> Step:
        """Intend the snapshot.

        One that may still come is requested again under its token, so that it is not made twice.
        """
        mine = snapshot_state.asked(row)
        old = snapshot_state.seen(self.world, row) if mine else None
        # After a failed deletion a complete or failed snapshot is of no use: the thing may have been written to since.
        spent = old is not None and old.get("status") != snapshot_state.CREATING
        again = bool(mine) and not (row.failed and spent)
        step = Step(Verb.OPERATE, row, operation=snapshot_state.SNAPSHOT)
        self._depart(step, snapshot_state.FIRST)
        if not again:
            row.resolved = self.world.next_stamp()
            mine = token(row.key, row.resolved)
        row.intent = {"operation": snapshot_state.SNAPSHOT, "token": mine}
        step.arguments = {"token": mine, "name": physical_name(self.world.stack.name, row.name, row.key)}
        row.attempts += 1
        self._ask_at(row, now)
        return step

    def _snapshotting(self, row: Resource, now: float) -> Step | Waiting:
        """Wait for a requested snapshot: delete the thing once it is seen complete, keep the thing if it fails."""
        look = self.world.seen[row.key].observation if row.key in self.world.seen else NEVER_SEEN
        if look.presence is Presence.ABSENT:
            return self._missed(row, now) or self._forget(row, snapshot_state.TOO_LATE)
        if look.presence is Presence.UNKNOWN:
            return Waiting(row.name, Why.UNSEEN, reason=look.reason, since=row.updated_at, key=row.key)
        mine = snapshot_state.seen(self.world, row)
        if mine is None:
            return self._ask_again(row, now)
        if mine.get("status") == snapshot_state.AVAILABLE:
            row.intent = {snapshot_state.SNAPSHOT: mine["id"]}
            return self._delete(row, now)
        if mine.get("status") == snapshot_state.ERROR:
            reason = f"its snapshot {mine['id']} failed: {mine.get('fault') or 'the cloud gives no reason'}"
            return self._failed_step(row, f"{reason}. {snapshot_state.WAY_OUT}", now)
        reason = f"its snapshot {mine['id']} is being made"
        return Waiting(row.name, Why.SNAPSHOT, (), reason, row.updated_at, key=row.key)

    def _missed(self, row: Resource, now: float) -> Step | Waiting | None:
        """Look once more for a thing that was not found; None once that is done.

        A single look may be a mistake, and would leave the thing behind, with its data.
        """
        if row.key in self.world.looked or not outcome.is_looked_for(row):
            return None
        missed_at = self.world.seen[row.key].observation.seen_at
        due_at = row.due_at or missed_at + max(self.world.second_look_s, self.world.listing_lag_s)
        # A first look in the future comes from another machine's clock; then there is no waiting.
        if missed_at <= now < due_at:
            return Waiting(row.name, Why.UNSEEN, (), row.reason, row.updated_at, due_at, row.key)
        return Step(Verb.OBSERVE, row)

    def _ask_again(self, row: Resource, now: float) -> Step | Waiting:
        """Request a snapshot again of which nothing is seen: it was lost, or the cloud lists late."""
        due_at = (row.acted_at or now) + self.world.listing_lag_s + delay_s(row.attempts)
        if due_at > now:
            return Waiting(row.name, Why.SNAPSHOT, (), "nothing is seen of it yet", row.updated_at, due_at, row.key)
        return self._snapshot(row, now)


def may_exist(row: Resource) -> bool:
    """Return whether there may be anything to delete.

    A nested stack may have been made without its row knowing the handle.
    """
    return row.handle != "" or (row.token != "" and kind_of(row.type) == "stack")


def _kept(row: Resource) -> bool:
    """Return whether the thing is kept: by policy, or since its type cannot make the snapshot that the policy wants."""
    if row.deletion_policy == DeletionPolicy.SNAPSHOT:
        return not type_of(row.type).can_snapshot
    return row.deletion_policy != DeletionPolicy.DELETE


def is_lost(row: Resource) -> bool:
    """Return whether another thing was made in the row's place since its own was absent."""
    return row.marks is not None and LOST in row.marks


def with_lost(row: Resource, now: float) -> dict[str, Any]:
    return {**(row.marks or {}), LOST: {"at": now}}


def without_lost(row: Resource) -> dict[str, Any] | None:
    return {name: mark for name, mark in (row.marks or {}).items() if name != LOST} or None
