"""Clusters, nodes, profiles, policies, receivers and actions in the database, for the Clustering API.

- `listing`: lookups by id, name or the beginning of an id; lists, filtered and paged
- `living`: which clusters and nodes exist still, and how they are
- `actions`: what was asked of them, and how it ended
"""
