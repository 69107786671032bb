"""Clusters, nodes, profiles, policies, receivers and actions in the database, for the Clustering API.

- `listing`: lookups by id, name or the beginning of an id; lists, filtered and paged
- `living`: which clusters and nodes exist still, and how they are
- `node_views`: nodes as users see them
- `bindings`: the policies attached to clusters
- `actions`: what was asked of clusters and nodes, and how it ended
- `tokens`: how those of templates are found again
- `events`: what happened to them, from the events of their stacks
"""
