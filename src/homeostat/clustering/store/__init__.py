"""Clusters, nodes, profiles, policies, receivers and actions in the database, for the Clustering API.

- `listing`: lookups by id, name or the beginning of an id; lists, filtered and paged
- `living`: existing clusters and nodes, and their status
- `node_views`: nodes as users see them
- `bindings`: the policies attached to clusters; `parts`, `node_parts`: their resources, by cluster and by node
- `actions`: actions on clusters and nodes, and their outcome; `waiting_actions`: actions that wait for lifecycle hooks
- `requests`: the outcome of requests for nodes
- `moves`: moves of members between stacks
- `tokens`: tokens of clusters and other objects in templates
- `events`: events of clusters and nodes, derived from those of their stacks
"""
