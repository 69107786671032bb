"""The HTTP interface of the Clustering API, version 1: its routes translate between requests and the services.

- `context`: the caller, the project and the microversion of a request
- `lists`: filters, order and pages of lists
- `bodies`: fields of request bodies; `views`: objects in answers
- `types`, `specs`, `clusters`, `cluster_actions`, `operations`, `metadata`, `bindings`, `nodes`, `receivers`,
  `actions`, `events`, `about`: the routes, by subject
- `routes`: common definitions of routes; `routers`: all routers
"""
