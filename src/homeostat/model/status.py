"""State words of the Orchestration API (reference/heat/engine-semantics.md section 1)."""

from collections.abc import Mapping
from enum import StrEnum


class Action(StrEnum):
    INIT = "INIT"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ROLLBACK = "ROLLBACK"
    CHECK = "CHECK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    ADOPT = "ADOPT"
    SNAPSHOT = "SNAPSHOT"
    RESTORE = "RESTORE"
    LOCK = "LOCK"
    UNLOCK = "UNLOCK"


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


class DeletionPolicy(StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


def joined(action: str, status: str) -> str:
    """`CREATE`, `COMPLETE` -> `CREATE_COMPLETE`, the form on the wire."""
    return f"{action}_{status}"


ROLLED_BACK_ON_FAILURE = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
"""Stack actions that fall back to the last COMPLETE revision when rollback is enabled (CV11)."""


MAINTENANCE = frozenset({Action.SUSPEND, Action.RESUME, Action.LOCK, Action.UNLOCK})
"""Actions on what is there: they leave the desired state as it is, and nothing is made or removed by them."""

LOCKING = frozenset({Action.LOCK, Action.UNLOCK})

State = tuple[str, str]
"""Action and status."""

LATER = frozenset(Action) - {Action.INIT, Action.CREATE, Action.ADOPT, Action.ROLLBACK}
RESOURCE_ACTIONS: Mapping[str, frozenset[Action]] = {
    Action.INIT: frozenset({Action.CREATE, Action.ADOPT, Action.DELETE}),
    **dict.fromkeys(LATER | {Action.CREATE, Action.ADOPT}, LATER),
    Action.ADOPT: LATER | {Action.CREATE},
    Action.CHECK: LATER | {Action.CREATE, Action.ADOPT},
    Action.DELETE: frozenset({Action.DELETE}),
}
"""Which other actions may come after one, for a resource. What is being deleted never comes back: a new row does.
What was to be taken over, and is not there, is made; so is what was marked unhealthy before it was ever there. And what
could not be taken over, and was marked, has failed with that again when the time of its mark is over."""

STACK_ACTIONS: Mapping[str, frozenset[Action]] = {
    **dict.fromkeys(Action, LATER | {Action.ROLLBACK}),
    Action.ROLLBACK: LATER,
    Action.DELETE: frozenset({Action.DELETE, Action.UPDATE, Action.RESTORE, Action.LOCK}),
}
"""The same for a stack: rolled back once at most; an update, or going back to a snapshot, that comes while it is being
deleted wins (CV2); what could not be deleted may be locked."""

GONE: State = (Action.DELETE, Status.COMPLETE)
UNBEGUN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.CHECK})
"""Actions of a resource that may fail before they begin: values that do not fit, trouble that is merely noticed."""


ILL: State = (Action.CHECK, Status.FAILED)
WELL: State = (Action.CHECK, Status.COMPLETE)
HELD = frozenset({Action.SUSPEND, Action.LOCK})
AT_REST: Mapping[State, frozenset[State]] = {
    **{(action, Status.COMPLETE): frozenset({ILL}) for action in Action if action not in {*HELD, Action.DELETE}},
    **{(action, Status.FAILED): frozenset({WELL}) for action in (Action.CHECK, Action.UPDATE, Action.RESUME)},
    (Action.DELETE, Status.FAILED): frozenset({GONE}),
    (Action.UNLOCK, Status.COMPLETE): frozenset(
        {ILL, (Action.SUSPEND, Status.COMPLETE), *((action, Status.FAILED) for action in Action)}
    ),
}
"""What a stack at rest turns into by itself: one of its resources has failed; none of them has any more, or is
left (ADR 0047); what it was before it was locked."""


def resource_may(before: State, after: State) -> bool:
    """May a resource go from one state to the other? (Each such step is one event; a row begins as INIT_COMPLETE.)"""
    (was, status), (action, then) = before, after
    if before == GONE or after == GONE:
        return before != GONE
    if was == action:
        return _same_action(action, status, then)
    return action in RESOURCE_ACTIONS.get(was, ()) and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)


_AT_ONCE = {(Status.FAILED, action) for action in UNBEGUN}


def _same_action(action: str, status: str, then: str) -> bool:
    """It ends, or is tried again. What failed may turn out well, or fail anew for a newer revision before it begins."""
    if status == then:
        return (then, action) in _AT_ONCE
    if status == Status.COMPLETE:
        return action != Action.CREATE and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)
    return True


def stack_may(before: State | None, after: State) -> bool:
    """May a stack go from one state to the other? None: it is new. A newer revision may begin an action anew."""
    action, then = after
    if before is None:
        return action in (Action.CREATE, Action.ADOPT) and then == Status.IN_PROGRESS
    was, status = before
    if before == GONE:
        return False
    if after in AT_REST.get(before, ()):
        return True
    goes_on = was == action and status == Status.IN_PROGRESS
    return goes_on or (then == Status.IN_PROGRESS and action in STACK_ACTIONS[was])
