"""The Orchestration API v1: a router for each part of it, in the order in which addresses are matched.

`stacks`, `previews`, `resources`, `marks`, `explanations`, `events`, `actions`, `snapshots`, `revisions`,
`convergence`, `transfer` work on stacks · `lookup` finds them by name · `signals` takes what servers tell, `configs`
keeps what is deployed to them · `types`, `validation` are for writers of templates · `about` the service. `inventory`,
`outputs`, `views` and `revision_text` make the answers, `bodies` and `listing` read the requests, `models` documents
both.
"""

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
"""Fixed names come before names of stacks, and short addresses before those with name and id."""
