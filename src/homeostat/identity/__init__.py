"""Use of Keystone while the service works: acting for users, and users for servers.

- `trusts`: acts for users after their token has expired
- `descent`: which resource a stack was made for
- `stack_users`: users of the identity service for resources whose servers log in
"""
