"""States of stacks and resources in the words of Heat's API, and the transitions between them."""

from collections.abc import Mapping
from enum import StrEnum

from homeostat.model.errors import Bug


class Word(StrEnum):
    """Words that are compared and looked up in tables for each row of each pass."""

    # Enum's own hash is computed in Python, from the name. The hash of str runs in C and equals that of the plain text.
    __hash__ = str.__hash__


class Action(Word):
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


class Status(Word):
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


State = tuple[str, str]
"""Action and status."""

LATER = frozenset(Action) - {Action.INIT, Action.CREATE, Action.ADOPT, Action.ROLLBACK}
"""Actions that may follow the creation of a stack or resource."""
RESOURCE_ACTIONS: Mapping[str, frozenset[Action]] = {
    Action.INIT: frozenset({Action.CREATE, Action.ADOPT, Action.DELETE}),
    **dict.fromkeys(LATER | {Action.CREATE, Action.ADOPT}, LATER),
    Action.ADOPT: LATER | {Action.CREATE},
    Action.CHECK: LATER | {Action.CREATE, Action.ADOPT},
    Action.DELETE: frozenset({Action.DELETE}),
}
"""Action of a resource -> different actions that may follow.

Deletion of a row is final: a new row takes its place. CREATE follows ADOPT if the thing to adopt does not exist, and
CHECK if the resource was marked unhealthy before its creation. ADOPT follows CHECK when the unhealthy mark of a
resource expires whose adoption had failed: the row returns to ADOPT_FAILED.
"""

GONE: State = (Action.DELETE, Status.COMPLETE)
UNBEGUN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.CHECK})
"""Actions of a resource that may fail before they begin: values do not fit, or trouble was only observed."""


def resource_may(before: State, after: State) -> bool:
    """Return whether a resource may change from one state to another.

    Each change is an event; a row begins as INIT_COMPLETE.
    """
    (was, status), (action, then) = before, after
    # Any row may be removed (its thing vanished, was retained or never created); removal is final.
    if before == GONE or after == GONE:
        return before != GONE
    if was == action:
        return _same_action(action, status, then)
    return action in RESOURCE_ACTIONS.get(was, ()) and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)


_AT_ONCE = {(Status.FAILED, action) for action in UNBEGUN}


def _same_action(action: str, status: str, then: str) -> bool:
    """Return whether an action may end, or be repeated.

    A failed action may still succeed, or fail again for a newer revision before it begins.
    """
    if status == then:
        return (then, action) in _AT_ONCE
    # The thing of a row is created once; a second creation takes a new row.
    if status == Status.COMPLETE:
        return action != Action.CREATE and (then == Status.IN_PROGRESS or (then, action) in _AT_ONCE)
    return True


STATES: tuple[State, ...] = tuple((action, status) for action in Action for status in Status)
RESOURCE_TRANSITIONS: frozenset[tuple[State | None, State]] = frozenset(
    (before, after) for before in STATES for after in STATES if resource_may(before, after)
)
"""`resource_may` as a table."""


def check_transition(
    legal: frozenset[tuple[State | None, State]], subject: tuple[str, str, str], before: State | None, after: State
) -> None:
    """Check that a stack or resource may change to a state.

    Args:
        legal: The table of legal transitions.
        subject: For the message: "stack" or "resource", id or key, name. Not a text: nearly all changes are legal.
        before: The current state; None for a new stack or resource.
        after: The next state.

    Raises:
        Bug: The transition is illegal.
    """
    if (before, after) not in legal:
        was = "nothing" if before is None else joined(*before)
        noun, key, name = subject
        raise Bug(f"{noun} {key} ({name}) cannot change from {was} to {joined(*after)}")


DRAINED = "DISABLED BY FILE"
"""Answer of the health check while the drain file exists, as in OpenStack's oslo.middleware."""
