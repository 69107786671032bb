"""Decisions about single resources: a step, nothing to do, or a named reason to wait. Pure."""

from dataclasses import replace

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import SETTLED, Decision, Settled, Step, Verb, Waiting, Why
from homeostat.model.status import MAINTENANCE, Action, Status
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import check, maintenance_state, restore, snapshot
from homeostat.planner.actions.maintenance import Maintenance, held
from homeostat.planner.lifecycle import adoption_data, hooks
from homeostat.planner.lifecycle.adoption import Takeovers
from homeostat.planner.lifecycle.deletion import may_exist
from homeostat.planner.lifecycle.intents import CALM_S
from homeostat.planner.policies import unhealthy
from homeostat.planner.policies.healing import Healing, was_never_well
from homeostat.planner.policies.unhealthy import Mark
from homeostat.planner.retry import conditions
from homeostat.planner.retry.backoff import delay_s
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import is_renamed, type_of
from homeostat.templates.registry import PRE_CREATE, PRE_UPDATE

ATTEMPTS_MAX = 5
"""Creations tried for one resource before it is FAILED and left to the user."""


class Decider(Healing, Maintenance, Takeovers):
    """Decides about single resources of one world."""

    # -- what should exist -------------------------------------------------------------------------------------------

    def keep(self, definition: Definition, now: float) -> Decision:
        """Decide about a resource that should exist, and whose requirements are all done."""
        row = self.current.get(definition.name)
        # Another name of the same type is no replacement: the row takes it on. Users go on seeing the name they know.
        if row is not None and row.type != definition.type and is_renamed(row.type, definition.type):
            row.called, row.type = row.shown_type, definition.type
        unchanged = self._unchanged(definition, row, now)
        if unchanged is not None:
            return unchanged
        # Such a row is in progress here: `_unchanged` has decided about all others.
        if row is not None and check.only_finishes(self.world):
            return self._finish(definition, row, now)
        # First: a thing that came back makes its replacement superfluous, so no hook of the replacement may stop it.
        stopped = self.came_back(definition, row, now) or self._before(definition, row, now) or self._after(row, now)
        if stopped is not None:
            return stopped
        if self._is_external(definition, row):
            return self.keep_external(definition, row, now)
        if row is None:
            return self._halt(definition.name) or self._absent_requirements(definition) or self._create(definition, now)
        if row.action == Action.INIT:
            # A replacement row is carried on although its revision has failed: its predecessor is being deleted
            # already.
            halted = self._halt(row.name) if row.replaces is None else None
            if adoption_data.of(row) is not None:
                return halted or self.take_over(definition, row, now)
            halted = halted or self._waiting_for_predecessor(row) or self._absent_requirements(definition)
            return halted or self._begin(definition, row, now)
        if row.busy:
            return self._in_progress(definition, row, now)
        mark = unhealthy.mark_of(row)
        if mark is not None:
            return self._marked(definition, row, mark, now)
        if row.failed:
            return self._after_failure(definition, row, now)
        return self._at_rest(definition, row, now)

    def _is_external(self, definition: Definition, row: Resource | None) -> bool:
        """Return whether the thing is not managed here, or is not to be any more.

        In a stack that is held nothing becomes anything else: the row alone counts.
        """
        if row is not None and row.external_id is not None:
            return True
        return definition.external_id is not None and not self.world.stack.held

    def _unchanged(self, definition: Definition, row: Resource | None, now: float) -> Decision | None:
        """Decide about a resource that is left as it is whatever its definition says; None where it may be changed."""
        stack = self.world.stack
        # Maintenance and snapshots are carried to their own end, whatever the stack does by now: only their own code
        # knows what was asked of the thing, and what shows that it is done.
        if row is not None and row.busy and row.action in MAINTENANCE:
            return self.under_treatment(row, now)
        if row is not None and row.busy and row.action == Action.SNAPSHOT:
            return snapshot.go_on(self.world, row, now)
        if row is not None and row.busy:
            # Other acts in progress end as well, but nothing may follow from them in a stack that is maintained or
            # held.
            return self._finish(definition, row, now) if stack.maintained or stack.held else None
        if stack.maintained:
            return self.maintain(row, now)
        if stack.checking:
            return check.check(self.world, row, now)
        if stack.snapshotting:
            return snapshot.take(self.world, row, now)
        return self._held(definition, row) if stack.held else None

    def _held(self, definition: Definition, row: Resource | None) -> Waiting | None:
        """Have a resource of a locked or suspended stack wait if it would have to be made, retried or replaced.

        None for one at rest: it is judged as usual, and what is wrong with it is only noted.
        """
        if row is None or row.action == Action.INIT:
            return held(self.world.stack, definition.name)
        mark = unhealthy.mark_of(row)
        if mark is not None:
            return Waiting(row.name, Why.UNHEALTHY, (), mark.reason, mark.since, key=row.key)
        if row.failed:
            return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        return None

    # -- hooks -------------------------------------------------------------------------------------------------------

    def _before(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Stop at a hook before anything is done about the resource for this revision."""
        overtaken = hooks.interrupted(self.world, row) if row is not None else None
        if overtaken is not None or not definition.hooks:
            return overtaken
        if row is None or row.action == Action.INIT:
            return self._before_creation(definition, row, now)
        newer = self.unsettled and row.revision != self.world.stack.revision
        if PRE_UPDATE in definition.hooks and newer:
            return hooks.stop(self.world, row, PRE_UPDATE, now)
        return None

    def _before_creation(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        if PRE_CREATE not in definition.hooks or not hooks.holds(self.world, PRE_CREATE):
            return None
        if row is not None:
            return hooks.stop(self.world, row, PRE_CREATE, now)
        # The stop has to be remembered somewhere, so the row is stored earlier than usual, as INIT.
        fresh = self._new_row(definition, now)
        step = hooks.stop(self.world, fresh, PRE_CREATE, now)
        if isinstance(step, Step):
            step.inserted = True
        return step

    def _after(self, row: Resource | None, now: float) -> Step | Waiting | None:
        """Stop at a hook once the resource is complete."""
        hook = hooks.due(self.world, row) if row is not None and row.status == Status.COMPLETE else ""
        return hooks.stop(self.world, row, hook, now) if row is not None and hook else None

    def _waiting_for_predecessor(self, row: Resource) -> Waiting | None:
        old = self.world.rows.get(row.replaces or "")
        if old is not None and old.deleting:
            return Waiting(row.name, Why.LEAVING, (old.key,), old.reason, row.updated_at, key=row.key)
        return None

    # -- in progress -------------------------------------------------------------------------------------------------

    def look_for(self, row: Resource, now: float) -> Step | Waiting:
        """Look for what a creation without an answer has made; nothing is begun for it."""
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        return self._find(row, now)

    def _finish(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Bring what is in progress to its end, and begin nothing for it."""
        if row.action == Action.ADOPT:
            return self._taking_over(row, now)
        if row.external_id is not None:
            return self._watched(row, now)
        # Without a token the search has already ended with nothing: there is nothing to finish.
        if row.handle == "" and row.action == Action.CREATE:
            return self._find(row, now) if row.token else SETTLED
        if row.acted_at is None and not self._is_missed(row):
            return self._again(definition, row, now)
        verdict = type_of(row.type).judge(thing_of(self.world, row), now)
        if verdict.condition in (Condition.READY, Condition.DRIFTED):
            outcome.judge_at_rest(self.world, row, verdict)
            return Step(Verb.RECORD, row, events=outcome.complete(self.world, row, now).events)
        visible_at = (row.acted_at or now) + self.world.listing_lag_s
        # A cloud that lists late does not show what was just created: absent means nothing before `visible_at`.
        late = row.action == Action.CREATE and now < visible_at
        # To heal would be to begin something, so what is broken or gone fails here.
        if verdict.condition is Condition.BROKEN or (verdict.condition is Condition.ABSENT and not late):
            return self._failed_step(row, verdict.reason, now)
        return self._building(row, verdict, visible_at if late else verdict.due_at)

    def _in_progress(self, definition: Definition, row: Resource, now: float) -> Decision:
        if row.action == Action.ADOPT:
            return self._taking_over(row, now)
        # Before the old act is waited for: a newer revision frees a resource from what would never become ready (CV14).
        if row.revision != self.world.stack.revision:
            changed = self._redirected(definition, row, now)
            if changed is not None:
                return changed
        # The intent is stored and its outcome is not known: a crash came between, or an answer was lost.
        if row.acted_at is None and not self._is_missed(row):
            return self._again(definition, row, now)
        verdict = self._judge_unfinished(row, now)
        if verdict.condition in (Condition.READY, Condition.DRIFTED):
            outcome.judge_at_rest(self.world, row, verdict)
            return Step(Verb.RECORD, row, events=outcome.complete(self.world, row, now).events)
        if verdict.condition is Condition.ABSENT:
            visible_at = (row.acted_at or now) + self.world.listing_lag_s
            # Otherwise a slow listing would have a second thing made.
            if row.action == Action.CREATE and now < visible_at:
                return self._building(row, verdict, visible_at)
            return self._recreate(definition, row, verdict, now)
        if verdict.condition is Condition.BROKEN:
            return self._mend(definition, row, verdict, now)
        if verdict.condition is Condition.UNKNOWN:
            return Waiting(row.name, Why.UNSEEN, reason=verdict.reason, since=row.updated_at, key=row.key)
        return self._building(row, verdict, verdict.due_at)

    def _is_missed(self, row: Resource) -> bool:
        """Return whether the thing that an update should change was not found.

        Such an update is not repeated. The row is judged instead, so that its thing is looked for once more.
        """
        return outcome.is_changed_outside(row) and conditions.is_gone(self.world, row)

    def _judge_unfinished(self, row: Resource, now: float) -> Verdict:
        """Judge a thing whose act is in progress.

        A thing found after its answer was lost is BROKEN if it is of no use without what only that answer told.
        """
        kind = type_of(row.type)
        thing = thing_of(self.world, row, kind)
        missed = kind.lost_fields(thing) if row.action == Action.CREATE and thing.seen.present else ()
        if missed:
            return Verdict(Condition.BROKEN, f"its {', '.join(missed)} was lost with an answer", Remedy.RECREATE)
        return kind.judge(thing, now)

    def _building(self, row: Resource, verdict: Verdict, due_at: float | None) -> Waiting:
        return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, due_at, row.key)

    def _redirected(self, definition: Definition, row: Resource, now: float) -> Decision | None:
        """Decide about a resource in progress for which a newer revision came (CV2, CV14).

        None where the newer revision wants the same, or where the outcome of the act has to be known first.
        """
        # Whether anything was created is not known yet: a replacement made now could leave a second thing behind.
        if row.action == Action.CREATE and row.acted_at is None:
            return None
        if definition.type != row.type:
            return self._halt(row.name) or self._replace(definition, row, now)
        try:
            want = self._want(definition, row)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now)
        # An update without an answer is sent again as it was intended, which is idempotent, and redirected after that.
        if not self._changed(want, row) or row.acted_at is None:
            return None
        halted = self._halt(row.name)
        if halted is not None:
            return halted
        if row.action == Action.CREATE:
            return self._replace(definition, row, now)
        return self._update_or_replace(want, row, now)

    def _again(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Repeat an act whose outcome is not known, after a search where repeating could make a second thing."""
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        if row.action == Action.CREATE and row.handle == "":
            if row.token:
                return self._find(row, now)
            # The search found nothing and the token is given up, so the creation begins again with a new one.
            return self._absent_requirements(definition) or self._begin(definition, row, now)
        intent = row.intent or {}
        if "operation" in intent:
            return Step(Verb.OPERATE, row, row.reason, operation=intent["operation"])
        return Step(Verb.UPDATE, row, row.reason, self._asked(row), changed=tuple(intent.get("changed", ())))

    # -- marked by users ---------------------------------------------------------------------------------------------

    def _marked(self, definition: Definition, row: Resource, mark: Mark, now: float) -> Decision:
        """Decide about a resource that is marked unhealthy: replace it, or wait for an update that does (MU2, MU7)."""
        if mark.is_over(now):
            return unhealthy.expire(self.world, row, now)
        decision = self._replaced_for_mark(definition, row, mark, now)
        if isinstance(decision, Waiting) and not row.failed:  # a snapshot was taken of it meanwhile, say
            return unhealthy.fails_again(row, mark, now)
        return decision

    def _replaced_for_mark(self, definition: Definition, row: Resource, mark: Mark, now: float) -> Decision:
        stack = self.world.stack
        # Only healing is subject to switches and to the healing policy; an update replaces what is marked in any case.
        updated = stack.status == Status.IN_PROGRESS or (self.unsettled and row.revision != stack.revision)
        restricted = "replace" in definition.restricted and row.asked_at is None
        if not updated and (restricted or not check.heals(self.world, row)):
            return Waiting(row.name, Why.UNHEALTHY, (), mark.reason, mark.since, mark.expires_at, row.key)
        halted = self._halt(row.name)
        if halted is not None and row.asked_at is None:
            # Examined again when the mark expires: without the mark the thing may be well.
            return replace(halted, due_at=mark.expires_at)
        gone = self._absent_requirements(definition)
        if gone is not None:
            return gone
        stopped = self.held_back(row, mark.reason, now, destroys=not updated)
        if isinstance(stopped, Waiting) and mark.expires_at is not None:
            return replace(stopped, due_at=min(mark.expires_at, stopped.due_at or mark.expires_at))
        if stopped is not None:
            return stopped
        row.attempts = 0
        step = self._replace(definition, row, now, f"it is marked unhealthy: {mark.reason}")
        self.begin_healing(step)
        return step

    # -- after a failure ---------------------------------------------------------------------------------------------

    def _after_failure(self, definition: Definition, row: Resource, now: float) -> Decision:
        unseen = check.look_first(self.world, row)
        if unseen is not None:
            return unseen
        # No retry was requested: neither for this resource, nor by a revision newer than the one it has failed for.
        if row.asked_at is None and (row.revision == self.world.stack.revision or not self.unsettled):
            return self._failed(definition, row, now)
        halted = self._halt(row.name)
        if halted is not None and row.asked_at is None:
            return halted
        row.attempts = 0
        return self._came_to_be(row, now) or self._try_again(definition, row, now)

    def _try_again(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Choose the way to retry a failed resource: in place where that loses nothing, else by a replacement."""
        if adoption_data.of(row) is not None:
            return self.take_over(definition, row, now)
        same = definition.type == row.type
        # Nothing was made, so the row itself can be used again. (A nested stack may exist without a handle.)
        if row.handle == "" and (same or not may_exist(row)):
            return self._begin(definition, row, now)
        # Not replaced but told again what it should be, so that each of its own parts is retried by itself.
        gone = row.action == Action.CHECK and conditions.is_gone(self.world, row)
        if same and type_of(row.type).heals_itself and not gone:
            return self._update_again(definition, row, now)
        if row.action == Action.CREATE:
            # What was never complete holds no data, but may hold a name, an address or quota that the next one needs.
            return self._delete_first(definition, row, now)
        if row.action in (Action.UPDATE, Action.SNAPSHOT, *MAINTENANCE) and same:
            return self._after_failed_update(definition, row, now)
        if row.action == Action.CHECK and same:
            return self._after_failed_check(definition, row, now)
        return self._replace(definition, row, now)

    def _failed(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Decide about a failed resource for which no retry was requested.

        One that failed a check may have come back, or may still be brought back (CV13). One that could not be made or
        changed is retried when something that it requires has changed. One that became ready after its time was over is
        well.
        """
        waiting = Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        if definition.type != row.type:
            return waiting
        if row.handle and row.action in (Action.CHECK, Action.SNAPSHOT):
            verdict = type_of(row.type).judge(thing_of(self.world, row), now)
            if verdict.condition in (Condition.READY, Condition.DRIFTED):
                # That the thing is well does not undo the failure of its snapshot.
                return waiting if row.action == Action.SNAPSHOT else self._passes_again(row, verdict, now)
            if outcome.unfit(verdict) and verdict.remedy is not Remedy.MANUAL and check.heals(self.world, row):
                return self._bring_back(definition, row, verdict, now)
        late = self._came_to_be(row, now) if conditions.is_at_rest(self.world.stack) else None
        if late is not None:
            return late
        if not conditions.may_succeed(self.world, row, now, changed=self.stale(definition, row)):
            return waiting
        return self._absent_requirements(definition) or self._retry(definition, row, now)

    def _came_to_be(self, row: Resource, now: float) -> Step | None:
        """Complete a resource that could not be made in its time and is there by now, rather than make another one."""
        verdict = check.came_to_be(self.world, row, now) if row.action == Action.CREATE else None
        return self._passes_again(row, verdict, now) if verdict is not None else None

    def _passes_again(self, row: Resource, verdict: Verdict, now: float) -> Step:
        outcome.judge_at_rest(self.world, row, verdict)
        # The failure has set the row's revision to the newest, with which the row was never compared: now it will be.
        row.revision = min(row.revision, self.world.settled_revision)
        return Step(Verb.RECORD, row, events=outcome.complete(self.world, row, now).events)

    def _retry(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Retry without a request: at once, and then at growing intervals."""
        attempts, due_at = row.attempts, conditions.due_at(row)
        if due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, due_at, row.key)
        if conditions.is_gone(self.world, row):
            return self._recreate(definition, row, conditions.absence(self.world, row), now)
        decision = self._try_again(definition, row, now)
        # Some ways to retry reset the count; the intervals have to go on growing.
        row.attempts = max(row.attempts, attempts + 1)
        return decision

    def _bring_back(self, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
        if verdict.condition is Condition.ABSENT:
            return self._recreate(definition, row, verdict, now)
        return self._mend(definition, row, verdict, now)

    def _update_again(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Send a resource that mends its own parts its whole desired state again, whatever failed before."""
        try:
            return self._update(self._want(definition, row), row, {}, now)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now)

    def _after_failed_check(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Keep what is well by now; replace what is gone or of no use, under the rules of healing."""
        verdict = type_of(row.type).judge(thing_of(self.world, row), now)
        if verdict.condition is Condition.UNKNOWN:
            return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
        if verdict.condition in (Condition.READY, Condition.DRIFTED):
            return self._passes_again(row, verdict, now)
        if verdict.condition is Condition.ABSENT:
            return self._recreate(definition, row, verdict, now)
        return self._replaced_by_healing(definition, row, verdict.reason, now)

    def _after_failed_update(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Decide about a failed update: a thing that is well in spite of it may hold data, and is kept (CV10, CV13).

        An update that failed before anything acted has left the row as it was; what the cloud itself refused is
        requested again.
        """
        verdict = type_of(row.type).judge(thing_of(self.world, row), now)
        # A suspension or resumption that failed halfway is put right by an operation, without a replacement.
        if row.action in MAINTENANCE and verdict.remedy is Remedy.OPERATE:
            return self._mend(definition, row, verdict, now)
        # Not being seen is no reason to replace.
        if verdict.condition is Condition.UNKNOWN:
            return Waiting(row.name, Why.UNSEEN, (), verdict.reason, row.updated_at, key=row.key)
        if verdict.condition is Condition.ABSENT:
            return self._recreate(definition, row, verdict, now)
        if verdict.condition not in (Condition.READY, Condition.DRIFTED):
            return self._replace(definition, row, now)
        try:
            want = self._want(definition, row)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now)
        if self._changed(want, row):
            return self._update_or_replace(want, row, now)
        if row.action == Action.SNAPSHOT:
            return self._well_again(row, verdict, now)
        # The desired state equals the row's properties, but the cloud never took them on: the fields are in the intent.
        if row.acted_at is None:
            return self._update(want, row, want.kind.complete(row.properties), now)
        if verdict.condition is Condition.DRIFTED:
            return self._repair(row, verdict, now)
        return Step(Verb.RECORD, row, events=outcome.complete(self.world, row, now).events)

    def _well_again(self, row: Resource, verdict: Verdict, now: float) -> Step:
        """Complete a resource with which nothing was wrong but that its snapshot could not be made."""
        outcome.judge_at_rest(self.world, row, verdict)
        row.action, row.status, row.intent = Action.UPDATE, Status.IN_PROGRESS, None
        row.revision = self.world.stack.revision
        begun = outcome.event_of(row, row.status, outcome.CHANGED)
        return Step(Verb.RECORD, row, events=[begun, *outcome.complete(self.world, row, now).events])

    def _recreate(self, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
        """Make a missing or broken thing anew, at growing intervals, and fail after too many attempts (CV13)."""
        required = self._absent_requirements(definition)
        if required is not None:
            return required
        # Only a creation gives up: what was well once is healed for as long as it takes.
        if row.attempts >= ATTEMPTS_MAX and row.action == Action.CREATE and row.busy:
            return self._failed_step(row, verdict.reason, now)
        # A thing that was well for a while breaks for a new reason: the attempts before count no more.
        calm = row.status == Status.COMPLETE and now - row.updated_at >= CALM_S
        due_at = row.updated_at if calm or row.attempts <= 1 else row.updated_at + delay_s(row.attempts - 1)
        if due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
        gone = verdict.condition is Condition.ABSENT
        stopped = self.held_back(row, verdict.reason, now, gone=gone)
        stopped = stopped or (self.look_once_more(row, now) if gone else None)
        if stopped is not None:
            return stopped
        noticed = outcome.event_of(row, Status.FAILED, verdict.reason, Action.CHECK)
        known = row.action == Action.CHECK and row.failed
        row.reason = verdict.reason
        # Asked now, since the steps below change the row.
        never_well = was_never_well(row)
        if gone:
            # The new one first: there is nothing to delete, and the old row stays, should its thing come back
            # (ADR 0045).
            step = self._create(definition, now, row)
            row.action, row.status, row.updated_at = Action.CHECK, Status.FAILED, now
            self.replaced_for_absence(row, now)
        else:
            # A broken thing may hold the address or name that the new one needs (ADR 0009).
            step = self._delete_first(definition, row, now)
        if not never_well:
            self.begin_healing(step)
        if not known:
            step.events.insert(0, noticed)
        return step

    def _mend(self, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
        """Apply the remedy that the resource type gives for a broken thing."""
        if verdict.remedy is Remedy.OPERATE:
            return self._operate(row, verdict, now)
        if verdict.remedy is Remedy.RECREATE:
            return self._recreate(definition, row, verdict, now)
        if verdict.remedy is Remedy.REPLACE:
            return self._halt(row.name) or self._replaced_by_healing(definition, row, verdict.reason, now)
        if verdict.remedy is Remedy.UPDATE:
            return self._repair(row, verdict, now)
        # Remedy MANUAL: in progress the action itself fails; at rest it is a check that fails.
        return self._failed_step(row, verdict.reason, now, "" if row.busy else Action.CHECK)

    def _replaced_by_healing(self, definition: Definition, row: Resource, reason: str, now: float) -> Decision:
        stopped = self.held_back(row, reason, now)
        if stopped is not None:
            return stopped
        never_well = was_never_well(row)
        step = self._replace(definition, row, now, reason)
        if not never_well:
            self.begin_healing(step)
        return step

    def _operate(self, row: Resource, verdict: Verdict, now: float) -> Decision:
        return self._heal(row, verdict, now, Step(Verb.OPERATE, row, operation=verdict.operation))

    def _repair(self, row: Resource, verdict: Verdict, now: float) -> Decision:
        kind = type_of(row.type)
        spec = self._asked(row)
        # An interrupted update is made up for in the same request: its fields may not be among those that are compared.
        unchanged = (row.intent or {})["changed"] if outcome.is_unchanged(row) else ()
        drifted = tuple(kind.renamed.get(each, each) for each in verdict.drifted) or tuple(spec)
        changed = tuple(dict.fromkeys((*drifted, *unchanged)))
        return self._heal(row, verdict, now, Step(Verb.UPDATE, row, spec=spec, changed=changed))

    def _heal(self, row: Resource, verdict: Verdict, now: float, step: Step) -> Decision:
        """Intend an act that brings a thing back; from the third in a row on, at growing intervals."""
        calm = now - row.updated_at >= CALM_S
        attempts = 1 if calm else row.attempts + 1
        due_at = row.updated_at + delay_s(attempts - 2) if attempts > 2 else now
        if due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
        stopped = self.held_back(row, verdict.reason, now, destroys=False)
        if stopped is not None:
            return stopped
        never_well = was_never_well(row)
        row.reason = f"healing: {verdict.reason}"
        # While a resource is being created, an act on it is a part of the creation, and no event of its own.
        if not (row.busy and row.action == Action.CREATE):
            if not (row.failed and row.action == Action.CHECK):
                step.events.append(outcome.event_of(row, Status.FAILED, verdict.reason, Action.CHECK))
            row.action, row.status = Action.UPDATE, Status.IN_PROGRESS
            step.events.append(outcome.event_of(row, Status.IN_PROGRESS, row.reason))
        changed = {"changed": list(step.changed)}
        row.intent = {"operation": step.operation} if step.verb is Verb.OPERATE else changed
        row.acted_at = row.due_at = row.asked_at = None
        row.retries, row.attempts, row.updated_at = 0, attempts, now
        if not never_well:
            self.begin_healing(step)
        return step

    # -- at rest -----------------------------------------------------------------------------------------------------

    def _at_rest(self, definition: Definition, row: Resource, now: float) -> Decision:
        unseen = check.look_first(self.world, row)
        if unseen is not None:
            return unseen
        # An update was intended and then overtaken before the thing was changed; no look would show that.
        if outcome.is_unchanged(row) and not (self.halted or self.world.stack.held):
            return self._compare(definition, row, now)
        seen = self.world.seen.get(row.key)
        # Judging is skipped where nothing has changed since the last time: most rows of most passes end here.
        news = seen is not None and seen.number != row.judged
        # `_judge` may note something in the row without giving a step; the note has to be stored all the same.
        before = (row.intent, row.asked_at)
        if news or check.left_alone(row) or row.asked_at is not None or maintenance_state.unresumed(self.world, row):
            healing = self._judge(definition, row, now)
            if healing is not None:
                return healing
        if news:
            row.judged = self.world.seen[row.key].number
            # Something was seen that differs from before, so whatever reads the attributes has to read them again.
            row.changed = self.world.next_stamp()
        decision: Decision = SETTLED
        newer = self.unsettled and row.revision != self.world.stack.revision
        changes = newer or definition.type != row.type or self.stale(definition, row)
        if changes and not self.world.stack.held:
            decision = self._compare(definition, row, now)
        told = news or before != (row.intent, row.asked_at)
        return Settled(Step(Verb.RECORD, row)) if told and decision is SETTLED else decision

    def stale(self, definition: Definition, row: Resource) -> bool:
        """Return whether a reference or attribute that the resource reads has changed since it last read them."""
        required = (self.current[name] for name in definition.requires if name in self.current)
        return any(other.changed > row.resolved for other in required)

    def _judge(self, definition: Definition, row: Resource, now: float) -> Decision | None:
        """Judge a resource at rest; bring it back, or leave it alone where that is switched off (CV8).

        None where it is as it should be, is left alone, or is mended by comparing it with a newer revision.
        """
        verdict = maintenance_state.at_rest(self.world, row, now)
        if outcome.unfit(verdict):
            newer = self.unsettled and row.revision != self.world.stack.revision
            # A newer revision mends it, see `_has_failed_parts`.
            if self._is_told(row, verdict):
                return None if newer else self._failed_step(row, verdict.reason, now, Action.CHECK)
            # So it does here, see `_compare`.
            if verdict is maintenance_state.ASLEEP and newer and not self.halted:
                return None
            if check.heals(self.world, row) and not _forbidden(definition, verdict):
                return self._bring_back(definition, row, verdict, now)
            check.leave_alone(row, verdict)
        elif check.left_alone(row):
            row.intent = None
        row.asked_at = None
        return None

    def _is_told(self, row: Resource, verdict: Verdict) -> bool:
        """Return whether it is a nested stack that has failed, and heals itself.

        That is only recorded, so it holds whatever the switches say.
        """
        stack = self.world.stack
        failed = type_of(row.type).heals_itself and verdict.remedy is Remedy.MANUAL
        return failed and not stack.held and not stack.adopting

    def _compare(self, definition: Definition, row: Resource, now: float) -> Decision:
        if definition.type != row.type:
            return self._halt(row.name) or self._replace(definition, row, now)
        try:
            want = self._want(definition, row)
        except (Rejected, Terminal) as error:
            return self._halt(row.name) or self._failed_step(row, error, now, Action.UPDATE)
        if self._changed(want, row) or outcome.is_unchanged(row):
            return self._halt(row.name) or self._update_or_replace(want, row, now)
        if self.unsettled and row.revision != self.world.stack.revision:
            # Types that every update of the stack replaces, or updates in place, also where nothing differs.
            if want.kind.renewed:
                return self._halt(row.name) or self._replace(definition, row, now)
            if want.kind.always_updates(want.values):
                return self._halt(row.name) or self._update(want, row, {}, now)
        # Only where nothing differs: a changed nested stack is updated, which has it looked at as well.
        operation = check.passed_on(self.world, row)
        if operation:
            return self._halt(row.name) or check.pass_on(self.world, row, operation, now)
        if (
            self._has_failed_parts(row)
            or restore.goes_down(self.world, row)
            or maintenance_state.sleeps_on(self.world, row)
        ):
            return self._halt(row.name) or self._update(want, row, {}, now)
        # Changes that do not concern the cloud, only the row. By this a dependant of a replaced resource lets go of
        # the old row: from now on `requires` has the key of the new one, and nothing uses the old one any more.
        called, remembered = definition.called or None, hooks.with_leaving(row.hooks, definition.hooks)
        moved = row.requires != want.requires or row.metadata != want.metadata
        moved = moved or row.called != called or row.hooks != remembered
        if moved or row.deletion_policy != definition.deletion_policy or row.replaced_by is not None:
            row.requires, row.metadata = want.requires, want.metadata
            row.called, row.hooks = called, remembered
            row.deletion_policy, row.replaced_by = definition.deletion_policy, None
            row.resolved, row.revision = self.world.stamp, self.world.stack.revision
            return Settled(Step(Verb.RECORD, row))
        if self.stale(definition, row):
            row.resolved = self.world.stamp
            return Settled(Step(Verb.RECORD, row))
        return SETTLED

    def _has_failed_parts(self, row: Resource) -> bool:
        """Return whether a nested stack has failures that a newer revision retries, even if nothing differs (MU7)."""
        seen = self.world.seen.get(row.key)
        shown = seen.observation.properties if seen is not None else {}
        ill = bool(shown.get("failures")) or shown.get("status") == "failed"
        return ill and self.unsettled and type_of(row.type).heals_itself


def _forbidden(definition: Definition, verdict: Verdict) -> bool:
    """Return whether the environment forbids the act that would bring the resource back.

    Creating anew what is gone is always allowed: it touches nothing.
    """
    if verdict.condition is Condition.ABSENT:
        return False
    action = {Remedy.UPDATE: "update", Remedy.RECREATE: "replace", Remedy.REPLACE: "replace"}.get(verdict.remedy)
    return action in definition.restricted
