"""Authentication of callers, and what each of them may do.

- `auth`: the access modes; `keystone` validates tokens; `peers` asks the kernel which user's process is calling
- `rules`: the rules and their defaults; `policy`: the rule of each route; `enforcer`: applies the policy file
- `policy_text`: rules as text, for `homeostat policy`
- `signed_urls`: URLs that carry their own permission
"""
