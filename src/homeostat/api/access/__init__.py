"""Who is calling, and what the caller may do.

- `auth`: the access modes; `keystone` validates tokens; `peers` asks the kernel whose process is calling
- `rules`: the rules and their defaults; `policy`: the rule of each route; `enforcer`: applies the policy file
- `policy_text`: rules as text, for `homeostat policy`
- `signed_urls`: URLs that carry their own permission
"""
