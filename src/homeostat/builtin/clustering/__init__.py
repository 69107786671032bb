"""Clusters, nodes, profiles, policies and receivers of templates: the Clustering API behind the port of a cloud.

- `port`: what the API does for them, as far as this package knows it
- `requesters`: on whose behalf that is done, and how deep stacks of clusters are nested in one another
- `cloud`: the things of a project, found again by the tokens of their creations
"""
