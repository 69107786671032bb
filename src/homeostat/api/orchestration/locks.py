"""Parsing of lock requests (LK1, LK7)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from homeostat.api.context import RequestContext
from homeostat.model.errors import Rejected
from homeostat.store.stacks.locks import Lock

LEVELS = ("all", "stacks")
REASON_MAX = 1000
KEYS = ("level", "reason", "expires_in", "expires_at")


def lock(context: RequestContext, stack_id: str, options: Any) -> None:
    """Lock a stack.

    Args:
        options: `{"level": "all" | "stacks", "reason": text, "expires_in": seconds | "expires_at": time}`
    """
    if options not in (None, "") and not isinstance(options, Mapping):
        raise _wrong("", f"it must be a map that may have {', '.join(KEYS)}, or null")
    context.service.actions.lock(stack_id, _wanted(context, options or {}), _breaks(context))


def unlock(context: RequestContext, stack_id: str) -> None:
    """Unlock a stack."""
    context.service.actions.unlock(stack_id, _breaks(context))


def _wanted(context: RequestContext, options: Mapping[str, Any]) -> Lock:
    """Parse the lock. Raise Rejected naming the place."""
    unknown = [name for name in options if name not in KEYS]
    if unknown:
        raise _wrong(f".{unknown[0]}", f"there is no such key; there are {', '.join(KEYS)}")
    level = options.get("level", "all")
    if level not in LEVELS:
        raise _wrong(".level", f"it must be one of {', '.join(LEVELS)}, not {level!r}")
    reason = options.get("reason")
    if reason is not None and not (isinstance(reason, str) and len(reason) <= REASON_MAX):
        raise _wrong(".reason", f"it must be a text of at most {REASON_MAX} characters")
    now, caller = context.service.clock.now(), context.caller
    return {
        "level": level,
        "owner": caller.user,
        "owner_id": caller.user_id,
        "reason": reason,
        "at": now,
        "expires_at": _end(options, now),
    }


def _end(options: Mapping[str, Any], now: float) -> float | None:
    """Return the time at which the lock expires, in seconds since the epoch; None for never."""
    span, end = options.get("expires_in"), options.get("expires_at")
    if span is None and end is None:
        return None
    if span is not None and end is not None:
        raise _wrong(".expires_at", "give this or expires_in, not both")
    if span is not None:
        if isinstance(span, bool) or not isinstance(span, int | float) or not 0 < span <= 10**9:
            raise _wrong(".expires_in", "it must be a number of seconds above 0")
        return now + span
    try:
        moment = datetime.fromisoformat(end or "")
    except (TypeError, ValueError) as error:
        raise _wrong(".expires_at", f"it must be a time such as 2030-12-31T18:00:00Z, not {end!r}") from error
    seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    if seconds <= now:
        raise _wrong(".expires_at", f"the time {end} is over")
    return seconds


def _wrong(place: str, message: str) -> Rejected:
    return Rejected("HTTPBadRequest", f"lock{place}: {message}")


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
