"""Authentication and authorization of callers.

- `auth`: the access modes; `keystone` validates tokens
- `rules`: the rules and their defaults; `policy`: the rule of each route; `enforcer`: applies the policy file
"""
