"""Before a thing is replaced because it is absent: the owner looks once more, and what came back is kept. Pure.

One look that does not find a thing may be a mistake: of a list, of a cloud that has just started, of a directory that
was away. So an observer's look begins nothing. The owner asks for the thing itself, a moment later, in the pass that
would replace it; and while its replacement is under way, and before its row goes, what has come back stays.
"""

from homeostat.model.desired import Definition
from homeostat.model.observed import Condition, Presence, Remedy
from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.depart import Departures, is_lost, with_lost, without_lost
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import type_of

MISSED = "it was not found, and is looked for once more before another one is made"
CAME_BACK = "it came back"


class Healing(Departures):
    """Decides whether something may be replaced for what was seen of it."""

    def look_once_more(self, row: Resource, now: float) -> Step | Waiting | None:
        """What was not found is looked for by its owner, some time after the first look; None once that was done."""
        if row.key in self.world.looked or not outcome.is_looked_for(row):
            return None
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.UNSEEN, (), MISSED, row.updated_at, row.due_at, row.key)
        missed_at = self.world.seen[row.key].observation.seen_at
        due_at = missed_at + max(self.world.second_look_s, self.world.listing_lag_s)
        if missed_at <= now < due_at:  # where the clocks of two machines differ, it is looked for at once
            return Waiting(row.name, Why.UNSEEN, (), MISSED, missed_at, due_at, row.key)
        return Step(Verb.OBSERVE, row, MISSED)

    def replaced_for_absence(self, row: Resource, now: float) -> None:
        """Remember why another one is made."""
        if outcome.is_looked_for(row):
            row.marks = with_lost(row, now)

    def came_back(self, definition: Definition, row: Resource | None, now: float) -> Step | None:
        """Is what this row replaces, since it was absent, there again? Then it stays, and this one goes."""
        old = self.world.rows.get(row.replaces or "") if row is not None else None
        if row is None or old is None or not is_lost(old) or old.leaving or old.replaced_by != row.key:
            return None
        if row.status == Status.COMPLETE and row.action != Action.INIT:
            return None  # it may hold data by now
        if old.type != definition.type or not self._is_there(old, now):
            return None
        row.replaced_by, old.replaced_by = old.key, None
        old.marks = without_lost(old)
        old.judged = outcome.UNJUDGED
        # It was never compared with a revision at which it merely was away.
        old.revision = min(old.revision, self.world.settled_revision)
        events = outcome.complete(self.world, old, now).events
        for event in events:
            event.reason = CAME_BACK
        return Step(Verb.RECORD, old, CAME_BACK, events=events, also=[row])

    def _is_there(self, old: Resource, now: float) -> bool:
        seen = self.world.seen.get(old.key)
        if seen is None or seen.observation.presence is not Presence.PRESENT:
            return False
        verdict = type_of(old.type).judge(thing_of(self.world, old), now)
        useless = verdict.condition is Condition.BROKEN and verdict.remedy in (Remedy.RECREATE, Remedy.REPLACE)
        return not useless and verdict.condition is not Condition.PENDING
