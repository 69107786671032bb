"""Clusters: profiles, policies and nodes, and the decisions about them, in the words of the Clustering API. Pure.

- `specs`: the checked form of `{type, version, properties}`, and descriptions of types on the wire
- `profiles`: types of profiles, and their translation; `server_profile`, `stack_profile`: the two types;
  `definitions`: their common parts
- `policies`: types of policies, their order, and their fit to clusters; `policy_types`: the schemas
- `health_policy`, `detection_forms`: the health policy and its formats; `placeholders`: facts about a node in its URLs
  and parameters
- `attached`: attached policies; `arrangement`: their resources in the stack of a cluster; `affinity`: server groups;
  `load_balancing`: load balancers
- `sizes`: limits, resizes and scaling
- `choices`: choices among nodes and places; `placement`: these choices under all policies of a cluster
- `hooks`: lifecycle hooks of deletion policies
- `requests`: operations and recoveries of nodes
- `origins`: the original definitions of moved nodes
- `states`: status words, their reasons, and the names of actions
- `names`: names and ids of nodes
"""
