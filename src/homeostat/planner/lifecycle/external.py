"""Resources that reference an external thing (`external_id`). Pure.

The thing is observed, but never created, changed or deleted. It outlives the resource: the deletion policy is always
Retain.
"""

from homeostat.model.desired import Definition
from homeostat.model.errors import NotSupported, Rejected, Terminal
from homeostat.model.intent import adoption_of, without_adoption
from homeostat.model.observed import Condition
from homeostat.model.plan import OBSERVE, SETTLED, Decision, Settled, Step
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner import outcome
from homeostat.planner.actions import check
from homeostat.planner.context import Context
from homeostat.planner.lifecycle import create, hooks, intents
from homeostat.planner.lifecycle.create import may_exist
from homeostat.planner.policies import unhealthy
from homeostat.planner.scope import thing_of
from homeostat.resources.registry import type_of
from homeostat.templates import evaluate

EXTERNAL_ID_MAX = 1024
"""Maximum length of an external id."""


def decide(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision:
    """Decide about a resource whose definition or row references an external thing."""
    if row is None or row.action == Action.INIT:
        return context.wait_if_failed(definition.name) or context.acts.reference_external(definition, row, now)
    if _was_never_ours(row):
        # The resource may have created a thing before, which would be left behind: look for it first.
        unanswered = row.token != "" and (row.busy or may_exist(row))
        return (
            create.find(context, row, now)
            if unanswered
            else context.wait_if_failed(row.name) or context.acts.reference_external(definition, row, now)
        )
    if row.external_id is not None and row.action == Action.CREATE and row.failed:
        return _after_failed_look(context, definition, row, now)
    changed = _unsupported_change(context, definition, row)
    if changed and not context.world.stack.frozen:
        is_reported = row.failed and row.revision == context.world.stack.revision
        if is_reported:
            return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        waiting = None if row.busy else context.wait_if_failed(row.name)
        if waiting is not None:
            return waiting
        # The thing was created from the adoption data: nothing is left to adopt.
        row.intent = without_adoption(row.intent)
        return context.acts.fail(row, NotSupported(changed), now, Action.UPDATE)
    if row.busy:
        return watch(context, row, now)
    if row.failed and (context.is_newer(row) or row.converge_requested_at is not None):
        return context.acts.reference_external(definition, row, now)
    return _at_rest(context, definition, row, now)


def _after_failed_look(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Decide about a row whose first look failed: it may reference a different thing, or create one."""
    if not context.is_newer(row) and row.converge_requested_at is None:
        return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
    waiting = context.wait_if_failed(row.name)
    if waiting is not None:
        return waiting
    if definition.external_id is not None:
        return context.acts.reference_external(definition, row, now)
    # The handle is the id of the external thing, which the row does not stand for any more.
    row.external_id, row.handle = None, ""
    return context.acts.begin(definition, row, now)


def _unsupported_change(context: Context, definition: Definition, row: Resource) -> str:
    """Return the error if the definition names a different thing than the row, or ""."""
    try:
        same = external_id(context, definition) == row.external_id and definition.type == row.type
    except (Rejected, Terminal):
        same = False
    feature = f"Update to property external_id of {row.name} ({row.shown_type})"
    return "" if same else f"{feature} is not supported."


def external_id(context: Context, definition: Definition) -> str | None:
    """Return the id of the external thing; None if the definition names none.

    Raises:
        Rejected: A referenced resource has no such value.
        Terminal: The value is no id.
    """
    if definition.external_id is None:
        return None
    value = evaluate(definition.external_id, context.scope)
    if not isinstance(value, str) or not value:
        raise Terminal(f"external_id must be a text, got {value!r:.200}")
    if len(value) > EXTERNAL_ID_MAX:
        raise Terminal(f"external_id is longer than {EXTERNAL_ID_MAX} characters")
    return value


def reference_external(context: Context, definition: Definition, row: Resource | None, now: float) -> Decision:
    """Look whether the external thing exists."""
    is_new = row is None
    row = row or intents.new_row(context, definition, now)
    never_ours = _was_never_ours(row)
    try:
        row.external_id = external_id(context, definition)
    except (Rejected, Terminal) as error:
        step = context.acts.fail(row, error, now, Action.CREATE if adoption_of(row.intent) is None else Action.ADOPT)
        step.inserted = is_new
        return step
    # Retain in the row, too: the row may be a leftover without a definition one day.
    row.type, row.template_type, row.deletion_policy = definition.type, definition.template_type or None, "Retain"
    row.handle, row.token, row.properties = row.external_id or "", "", {}
    unhealthy.forget(row)
    row.intent = without_adoption(row.intent)
    events = outcome.begin(row, Action.CREATE if never_ours or row.action == Action.CREATE else Action.UPDATE)
    row.revision = context.world.stack.revision
    row.hooks = hooks.intended(context.world, row, definition.hooks)
    row.requires = [context.current[name].key for name in definition.requires if name in context.current]
    row.acted_at = row.due_at = row.converge_requested_at = None
    row.updated_at = now
    row.resolved = context.world.next_stamp()
    return Step(row, OBSERVE, inserted=is_new, events=events)


def watch(context: Context, row: Resource, now: float) -> Decision:
    if row.acted_at is None:
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        return Step(row, OBSERVE)
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    if verdict.condition in (Condition.READY, Condition.DRIFTED):
        row.judged_observation = context.world.seen[row.key].number
        return Step(row, events=outcome.complete(context.world, row, now).events)
    if outcome.unfit(verdict):
        return context.acts.fail(row, verdict.reason, now)
    return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, verdict.due_at, row.key)


def _at_rest(context: Context, definition: Definition, row: Resource, now: float) -> Decision:
    """Report changes of the thing, without acting on them: this is up to its owner."""
    mark = unhealthy.mark_of(row)
    if mark is not None:
        over = mark.is_over(now)
        waiting = Waiting(row.name, Why.UNHEALTHY, (), mark.reason, mark.since, mark.expires_at, row.key)
        return unhealthy.expire(context.world, row, now) if over else waiting
    unseen = check.look_first(context.world, row)
    if unseen is not None:
        return unseen
    seen = context.world.seen.get(row.key)
    unjudged = seen is not None and seen.number != row.judged_observation
    verdict = type_of(row.type).judge(thing_of(context.world, row), now)
    missing = verdict.condition in (Condition.ABSENT, Condition.BROKEN)
    if row.failed:
        if missing or row.action != Action.CHECK or verdict.condition is Condition.UNKNOWN:
            return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        return Step(row, events=outcome.complete(context.world, row, now).events)
    before, row.converge_requested_at = (row.intent, row.converge_requested_at), None
    if seen is not None and (unjudged or check.left_alone(row)):
        row.judged_observation = seen.number
        if missing and not context.world.stack.frozen:
            return context.acts.fail(row, verdict.reason, now, Action.CHECK)
        row.intent = None
        # The failure is reported after the stack is unlocked or resumed.
        if missing:
            check.leave_alone(row, verdict)
        row.changed = context.world.next_stamp() if unjudged else row.changed
    is_changed = unjudged or before != (row.intent, row.converge_requested_at)
    template_type = definition.template_type or None
    if not (is_changed or row.template_type != template_type):
        return SETTLED
    row.template_type = template_type
    return Settled(Step(row))


def _was_never_ours(row: Resource) -> bool:
    """Return whether the row is known to have no thing yet: nothing was created, adopted or referenced."""
    to_be_adopted = adoption_of(row.intent) is not None and row.token == ""
    return row.external_id is None and (row.handle == "" or to_be_adopted)
