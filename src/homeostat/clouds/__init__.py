"""The port to clouds and its adapters, which know nothing of each other.

- `port`: what a cloud does; what things there are is in `homeostat.kinds`
- `local`: servers, networks and volumes on this machine
- `openstack`: an OpenStack
- `simulated`: in memory, on virtual time
- `heat_api`: stacks in other regions, which `regions` names
- `identity`: Keystone; `credentials`: tokens for the owners of stacks
- `outbound`: requests to addresses that users name; `timed_streams`: their deadlines; `tls`: TLS of HTTP clients
- `unanswered`: reasons for missing answers; `counting`: one answer for each item of a batch
- `installed`, `combined`: adapters of installed packages, and several adapters as one cloud
"""
