"""The Orchestration API v1: one router per part.

- Operations on stacks: `stacks`, `previews`, `resources`, `marks`, `explanations`, `events`, `actions`, `snapshots`,
  `revisions`, `convergence`, `transfer`; `lookup` finds stacks by name
- For servers: `signals` receives what they report, `configs` stores what is deployed to them
- For authors of templates: `types`, `validation`
- The service itself: `about`
- Requests and responses: `bodies` and `listing` parse requests; `inventory`, `outputs`, `views` and `revision_text`
  build responses; `models` documents both
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
"""In matching order: fixed names before names of stacks, short addresses before those with name and id."""
