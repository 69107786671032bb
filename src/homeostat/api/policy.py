"""Who may do what: each route names the rule that guards it."""

from typing import Any

from fastapi import Depends, Request


def may(rule: str) -> Any:
    """For a route's `dependencies`: only for callers that this rule allows, `stacks:show` for one."""

    def check(request: Request) -> None:
        request.state.rule = rule

    return Depends(check)
