"""State words of the Orchestration API (reference/heat/engine-semantics.md section 1)."""

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
