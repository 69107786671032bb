"""The local cloud: `LocalCloud(root)` is the port's adapter for this machine.

- `cloud`: the port; each kind is served by a `Family`
- `family`: base class of all families
- `servers`, `storage`, `networks`, `floating_ips`, `load_balancers`, `flavors`, `snapshots`: the families
- `server_ports`, `server_boot`, `server_status`, `server_fencing`: parts of servers; `hypervisors`: this host
- `tree`, `tree_snapshot`, `files`: the state on disk, a view of it for a batch, and its files
- `processes`, `guest`, `landlock`: the processes of servers
- `forwarder`, `forwarder_files`: the processes of load balancers and floating IPs
- `watcher`, `orphans`: change notices, and the end of processes whose directory was removed
- `catalogue`, `addresses`, `inventory`, `project_migration`: images and flavors, loopback addresses, list of objects
"""

from homeostat.clouds.local.cloud import LocalCloud

__all__ = ["LocalCloud"]
