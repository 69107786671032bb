"""The Orchestration API v1: one router per part.

- Operations on stacks: `stacks`, `previews`, `resources`, `marks`, `explanations`, `events`, `actions`, `snapshots`,
  `revisions`, `convergence`, `transfer`, `graphs`, `health_findings`, `rollouts`; `lookup` finds stacks by
  name
- For servers: `signals` receives their reports, `configs` stores their software configs and deployments
- For authors of templates: `types`, `type_templates`, `validation`
- The service itself: `about`
- Requests and responses: `bodies`, `listing`, `locks` and `revision_match` parse requests; `inventory`,
  `resource_parts`, `outputs`, `views` and `revision_text` build responses; `models` documents both
- `routes`: common definitions of routes; `routers`: the routes of all modules
"""
