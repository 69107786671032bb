"""The routes of the Orchestration API, and the rules that guard them."""

from fastapi.routing import APIRoute
from oslo_policy.policy import RuleDefault

from homeostat.api.access import rules
from homeostat.api.access.policy import rule_of
from homeostat.api.orchestration import (
    about,
    actions,
    configs,
    convergence,
    events,
    explanations,
    lookup,
    marks,
    previews,
    resources,
    revisions,
    rollouts,
    signals,
    snapshots,
    stacks,
    transfer,
    types,
    validation,
)

ROUTERS = (
    previews.ROUTER,
    lookup.BELOW,
    transfer.ROUTER,
    stacks.ROUTER,
    lookup.ROUTER,
    resources.ROUTER,
    marks.ROUTER,
    signals.ROUTER,
    rollouts.ROUTER,
    configs.ROUTER,
    explanations.ROUTER,
    events.ROUTER,
    actions.ROUTER,
    snapshots.ROUTER,
    revisions.ROUTER,
    convergence.ROUTER,
    validation.ROUTER,
    types.ROUTER,
    about.ROUTER,
)
"""In matching order: fixed names before names of stacks, short addresses before those with name and id."""


def list_rules() -> list[RuleDefault]:
    """Return all rules with their defaults (entry point `oslo.policy.policies`)."""
    named: dict[str, list[tuple[str, str]]] = {}
    for route in (route for router in ROUTERS for route in router.routes):
        rule = rule_of(route)
        if isinstance(route, APIRoute) and rule is not None:
            named.setdefault(rule, []).extend((method, route.path_format) for method in sorted(route.methods or ()))
    return rules.defaults(named)
