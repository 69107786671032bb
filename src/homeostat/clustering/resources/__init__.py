"""`OS::Senlin::*` resources of templates: a cloud adapter on top of the services of the Clustering API.

Resources pass the same checks and services as requests of their user.

- `cloud`: the cloud of a project, which finds objects again by the tokens of their creations; `requesters`: the user on
  whose behalf it acts, and the nesting depth of stacks of clusters
- `api`: the operations on all kinds; `context`: their dependencies; `records`: values passed between these
- `specs`: profiles and policies, and the attachments of policies
- `clusters`, `nodes`, `receivers`: the other kinds
"""
