"""Authorization of routes: each route names the rule that guards it.

`rules` has the rules and their defaults; `enforcer` decides whom they allow.
"""

from typing import Any

from fastapi import Depends, Request
from starlette.routing import BaseRoute

from homeostat.api.access import rules
from homeostat.api.access.enforcer import Policy
from homeostat.api.http.inputs import Body, SignalBody

UNSET_HOOK = "unset_hook"
"""Key of a signal's body that clears a hook."""


def may(rule: str) -> Any:
    """Return a route dependency that admits only callers allowed by this rule, such as `stacks:show`."""

    async def check(request: Request) -> None:
        _checked(request, rule)

    check.rule = rule  # type: ignore[attr-defined]
    return Depends(check)


def may_act(family: str) -> Any:
    """Return a dependency for a route whose body has one key, the action: it checks the rule `family:action`.

    Actions without a rule are checked by the rule `action` of the family.
    """

    async def check(request: Request, body: Body) -> None:
        named = f"{family}:{next(iter(body), '')}"
        known = len(body) == 1 and named in rules.NAMES
        _checked(request, named if known else f"{family}:action")

    check.rule = f"{family}:action"  # type: ignore[attr-defined]
    return Depends(check)


def may_signal() -> Any:
    """Return a dependency for the signal route.

    Clearing a hook has a separate rule: stack users may send signals, but not clear hooks.
    """

    async def check(request: Request, body: SignalBody) -> None:
        _checked(request, "resource:clear_hook" if body is not None and UNSET_HOOK in body else "resource:signal")

    check.rule = "resource:signal"  # type: ignore[attr-defined]
    return Depends(check)


def _checked(request: Request, rule: str) -> None:
    policy: Policy = request.app.state.service.policy
    policy.check(rule, request.state.caller, request.state.project)


def rule_of(route: BaseRoute) -> str | None:
    """Return the rule that guards a route; None if the route names no rule."""
    names = [getattr(dependency.dependency, "rule", None) for dependency in getattr(route, "dependencies", ())]
    return next((name for name in names if name), None)
