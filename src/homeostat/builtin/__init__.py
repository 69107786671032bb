"""Resources that no cloud has, kept by the service itself (ADR 0029).

- `cloud`: the records of a project as a cloud adapter
- `kinds`: software configs, deployments, wait conditions and the other kinds of records
- `sessions`: transactions on records, their ids, keys and signed addresses
- `addresses`: access keys and ARNs
- `signals`: signals from servers and users; `inbox`: signals for handles and deployments; `signal_queues`: signals from
  queues of Zaqar; `reports`, `member_reports`: reports that rollouts and batches wait for
- `group_metadata`: metadata of groups in the view of their members
- `server_agents`: user data and keys, by which servers fetch their metadata and signal
- `access_keys`: access keys issued by the service
"""
