"""The Clustering API's own words: profiles, policies, nodes, and the decisions about them. Pure.

- `specs`: the checked form of `{type, version, properties}`, and how types are described on the wire
- `profiles`: types of profiles, and what a profile becomes; `server_profile`, `stack_profile`: the two types;
  `definitions`: what both share
- `names`: names and ids of nodes
"""
