"""Parsing of lock requests (LK1, LK7)."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from homeostat.api.context import RequestContext
from homeostat.api.http.bodies import Fault, RequestBody, read
from homeostat.model.errors import Rejected
from homeostat.store.stacks.locks import Lock

REASON_MAX = 1000
LASTS_MAX_S = 1e9


def _moment(text: Any) -> datetime | None:
    moment = None if text is None else datetime.fromisoformat(text if isinstance(text, str) else "")
    return None if moment is None else moment.replace(tzinfo=moment.tzinfo or UTC)


class LockOptions(RequestBody):
    """The value of the action `lock`."""

    level: Annotated[Literal["all", "stacks"], Fault("it must be one of all, stacks", ", not {input}")] = "all"
    reason: Annotated[
        str | None, Field(max_length=REASON_MAX), Fault(f"it must be a text of at most {REASON_MAX} characters")
    ] = None
    expires_in: Annotated[
        float | None, Field(gt=0, le=LASTS_MAX_S), Fault("it must be a number of seconds above 0")
    ] = None
    expires_at: Annotated[
        datetime | None,
        BeforeValidator(_moment),
        Fault("it must be a time such as 2030-12-31T18:00:00Z", ", not {input}"),
    ] = None


def lock(context: RequestContext, stack_id: str, options: Any) -> None:
    """Lock a stack. The options may be null or ""."""
    wanted = read(LockOptions, {} if options in (None, "") else options, "lock")
    now, caller = context.service.clock.now(), context.caller
    lock: Lock = {
        "level": wanted.level,
        "owner": caller.user,
        "owner_id": caller.user_id,
        "reason": wanted.reason,
        "at": now,
        "expires_at": _end(wanted, now),
    }
    context.service.actions.lock(stack_id, lock, _breaks(context))


def unlock(context: RequestContext, stack_id: str) -> None:
    """Unlock a stack."""
    context.service.actions.unlock(stack_id, _breaks(context))


def _end(options: LockOptions, now: float) -> float | None:
    """Return the time at which the lock expires, in seconds since the epoch; None for never. Raise Rejected."""
    if options.expires_at is None:
        return None if options.expires_in is None else now + options.expires_in
    if options.expires_in is not None:
        raise _wrong("give this or expires_in, not both")
    seconds = options.expires_at.timestamp()
    if seconds <= now:
        raise _wrong(f"the time {options.expires_at.isoformat()} is over")
    return seconds


def _wrong(message: str) -> Rejected:
    return Rejected("HTTPBadRequest", f"lock.expires_at: {message}")


def _breaks(context: RequestContext) -> Callable[[Lock], bool]:
    """Return whether the caller may remove a given lock: as its owner, or by the rule for locks of others."""
    caller = context.caller

    def breaks(lock: Lock) -> bool:
        # User ids decide if the identity service provides them: user names are unique only within a domain.
        if lock.get("owner_id") is not None or caller.user_id is not None:
            owns_lock = lock.get("owner_id") == caller.user_id
        else:
            owns_lock = lock.get("owner") == caller.user
        return owns_lock or context.service.policy.allows("actions:break_lock", caller, context.project)

    return breaks
