"""What the Clustering API does for resources of templates: the port `builtin.clustering.port`, provided.

Each thing goes through the checks and the services that a request of its user goes through.

- `api`: the port; `asking`: on whose behalf it acts
- `specs`: profiles and policies, and the clusters that policies are attached to
- `clusters`, `nodes`, `receivers`: the other things
"""
