"""The service as a cloud of its own: resources that no other cloud has (ADR 0029).

- `cloud`: the records of a project behind the port of a cloud
- `kinds`: software configs, deployments, wait conditions and the other kinds of records
- `sessions`: transactions on records, their ids, keys and signed addresses
- `addresses`: access keys and ARNs
- `signals`: signals from servers and users; `inbox`: signals for handles and deployments; `signal_queues`: signals from
  queues of Zaqar; `reports`, `member_reports`: reports that rollouts and batches wait for
- `group_metadata`: metadata of groups as their members have them
- `server_agents`: what a server needs to fetch its metadata and to signal
- `access_keys`: access keys that the service issues
"""
