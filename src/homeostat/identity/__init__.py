"""Use of Keystone: acting for users, and users for servers.

- `trusts`: acting for users after their tokens have expired
- `descent`: the resource that a stack was created for
- `stack_users`: Keystone users for resources whose servers log in
"""
