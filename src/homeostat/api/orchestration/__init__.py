"""The Orchestration API v1: one router per part.

- Operations on stacks: `stacks`, `previews`, `resources`, `marks`, `explanations`, `events`, `actions`, `snapshots`,
  `revisions`, `convergence`, `transfer`; `lookup` finds stacks by name
- For servers: `signals` receives what they report, `configs` stores what is deployed to them
- For authors of templates: `types`, `validation`
- The service itself: `about`
- Requests and responses: `bodies` and `listing` parse requests; `inventory`, `outputs`, `views` and `revision_text`
  build responses; `models` documents both
- `routers` has the routes of all modules, `policy_text` their rules as text
"""
