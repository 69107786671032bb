"""Keystone, as the service uses it while it works.

- `trusts`: acts for users after their token has expired
- `stack_users`: users of the identity service for resources whose servers log in
"""
