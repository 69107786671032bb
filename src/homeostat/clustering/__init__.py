"""The Clustering API: profiles, policies, clusters, nodes, receivers and actions, as a Senlin has them.

From the outside in:

- `wire`: routes, bodies and answers
- `resources`: the same for resources of templates, behind the port of a cloud
- `service`: what requests do
- `store`: rows
- `decisions`: decisions, which are pure

A cluster is a stack: its members come and go by revisions, as those of any group.
"""
