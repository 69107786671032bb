"""The Clustering API on the wire, version 1: translation between its requests and the service that carries them out.

- `context`: the caller, the project and the microversion of a request
- `lists`: filters, order and pages of lists
- `bodies`: what requests carry; `views`: what answers show
- `types`, `profiles`, `policies`, `clusters`, `cluster_actions`, `operations`, `metadata`, `bindings`, `nodes`,
  `receivers`, `actions`, `events`, `about`: the routes, by subject
- `routes`: their common definitions; `routers`: all of them
"""
