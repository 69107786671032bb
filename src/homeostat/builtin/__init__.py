"""The service as a cloud of its own: resources that no other cloud has (ADR 0029).

- `cloud`: software configs, deployments, wait conditions and other records, behind the port of a cloud
- `signals`: signals from servers and users
- `server_agents`: what a server needs to fetch its metadata and to signal
- `access_keys`: access keys that the service issues
"""
