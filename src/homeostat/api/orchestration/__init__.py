"""The Orchestration API v1: a router for each part of it, in the order in which addresses are matched.

`stacks`, `resources`, `explanations`, `events`, `actions`, `convergence` work on stacks · `lookup` finds them by name ·
`types`, `validation` are for writers of templates · `about` the service · `unsupported` what is refused. `inventory`,
`outputs`, `renderings` and `texts` make the answers, `bodies` and `listing` read the requests, `models` documents both.
"""

from homeostat.api.orchestration import (
    about,
    actions,
    convergence,
    events,
    explanations,
    lookup,
    resources,
    stacks,
    types,
    unsupported,
    validation,
)

ROUTERS = (
    unsupported.ROUTER,
    lookup.BELOW,
    stacks.ROUTER,
    lookup.ROUTER,
    resources.ROUTER,
    explanations.ROUTER,
    events.ROUTER,
    actions.ROUTER,
    convergence.ROUTER,
    validation.ROUTER,
    types.ROUTER,
    about.ROUTER,
)
"""Fixed names come before names of stacks, and short addresses before those with name and id."""
