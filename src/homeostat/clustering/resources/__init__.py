"""Clusters, nodes, profiles, policies and receivers of templates: things of a cloud, made by the service of clusters.

Each goes through the checks and the service that a request of its user goes through.

- `cloud`: the things of a project, found again by the tokens of their creations; `requesters`: on whose behalf they are
  made, and how deep stacks of clusters are nested in one another
- `api`: what is done for them; `context`: what that needs; `records`: what passes between these
- `specs`: profiles and policies, and the clusters that policies are attached to
- `clusters`, `nodes`, `receivers`: the other things
"""
