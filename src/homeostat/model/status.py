"""States of stacks and resources in the words of Heat's API, and the transitions between them."""

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
    """Join action and status as the API shows them: `CREATE`, `COMPLETE` -> `CREATE_COMPLETE`."""
    return f"{action}_{status}"


ROLLED_BACK_ON_FAILURE = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
"""Stack actions after whose failure a stack with rollback enabled goes back to its last COMPLETE revision (CV11)."""


MAINTENANCE = frozenset({Action.SUSPEND, Action.RESUME, Action.LOCK, Action.UNLOCK})
"""Actions on existing things that leave the desired state as it is; nothing is created or deleted for them."""

LOCKING = frozenset({Action.LOCK, Action.UNLOCK})
"""The actions of maintenance in which every resource gets its turn, even after failures."""

READ_ONLY_ACTIONS = frozenset({Action.CHECK, Action.SNAPSHOT})
"""Actions that change no thing of a stack."""
NON_CHANGING_ACTIONS = READ_ONLY_ACTIONS | MAINTENANCE
"""Actions that leave the desired state as it is."""

State = tuple[str, str]
"""Action and status."""

LATER = frozenset(Action) - {Action.INIT, Action.CREATE, Action.ADOPT, Action.ROLLBACK}
"""Actions that may follow once a stack or resource has begun to exist."""
RESOURCE_ACTIONS: Mapping[str, frozenset[Action]] = {
    Action.INIT: frozenset({Action.CREATE, Action.ADOPT, Action.DELETE}),
    **dict.fromkeys(LATER | {Action.CREATE, Action.ADOPT}, LATER),
    Action.ADOPT: LATER | {Action.CREATE},
    Action.CHECK: LATER | {Action.CREATE, Action.ADOPT},
    Action.DELETE: frozenset({Action.DELETE}),
}
"""Action of a resource -> other actions that may follow it.

A row that is being deleted never comes back; a new row takes its place. CREATE follows ADOPT for a thing that was to be
taken over and does not exist, and CHECK for a resource that was marked unhealthy before it was ever made. ADOPT follows
CHECK when the mark on a resource whose adoption had failed expires: it has failed with that again.
"""

STACK_ACTIONS: Mapping[str, frozenset[Action]] = {
    **dict.fromkeys(Action, LATER | {Action.ROLLBACK}),
    Action.ROLLBACK: LATER,
    Action.DELETE: frozenset({Action.DELETE, Action.UPDATE, Action.RESTORE, Action.LOCK}),
}
"""Action of a stack -> other actions that may follow it.

A rollback is never rolled back itself. An update, or going back to a snapshot, that is requested during a deletion wins
(CV2). A stack whose deletion failed may be locked.
"""

GONE: State = (Action.DELETE, Status.COMPLETE)
UNBEGUN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.CHECK})
"""Actions of a resource that may fail without having begun: its values do not fit, or trouble is merely noticed."""


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
"""State of a stack at rest -> states that it may change to without a request.

One of its resources has failed; none of them is FAILED any more, or none is left (ADR 0047); or an unlocked stack
returns to what it said before it was locked.
"""


def resource_may(before: State, after: State) -> bool:
    """Return whether a resource may change from one state to the other.

    Each such change is one event; a row begins as INIT_COMPLETE.
    """
    (was, status), (action, then) = before, after
    # Any row may be removed (a thing that vanished, was kept or was never made); nothing follows after that.
    if before == GONE or after == GONE:
        return before != GONE
    if was == action:
        return _same_action(action, status, then)
    return action in RESOURCE_ACTIONS.get(was, ()) and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)


_AT_ONCE = {(Status.FAILED, action) for action in UNBEGUN}


def _same_action(action: str, status: str, then: str) -> bool:
    """Return whether an action may end, or begin once more.

    A failed one may still turn out well, or fail anew for a newer revision before it begins.
    """
    if status == then:
        return (then, action) in _AT_ONCE
    # A row's thing is created once; another creation is another row.
    if status == Status.COMPLETE:
        return action != Action.CREATE and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)
    return True


def stack_may(before: State | None, after: State) -> bool:
    """Return whether a stack may change from one state to the other; `before` is None for a new stack.

    A newer revision may begin the same action again.
    """
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
