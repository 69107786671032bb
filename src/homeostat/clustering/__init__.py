"""Clusters: profiles, policies and nodes, and the decisions about them, in the words of the Clustering API. Pure.

- `specs`: the checked form of `{type, version, properties}`, and how types are described on the wire
- `profiles`: types of profiles, and what a profile becomes; `server_profile`, `stack_profile`: the two types;
  `definitions`: what both share
- `policies`: types of policies, their order, and which clusters they fit; `policy_types`: the schemas;
  `health_policy`, `health_forms`: the health policy; `placeholders`: facts about a node in its URLs and parameters
- `sizes`: limits, resizes and scaling; `choices`: which nodes go, where new ones are placed, who is updated together
- `states`: status words, their reasons, and the names of actions
- `names`: names and ids of nodes
"""
