"""The port to clouds and its adapters, which know nothing of each other.

- `port`: what a cloud does; what things there are is in `homeostat.kinds`
- `local`: servers, networks and volumes on this machine
- `simulated`: in memory, on virtual time
- `heat_api`: stacks in other regions, which `regions` names
- `identity`: Keystone
- `outbound`: requests to addresses that users name
- `installed`, `combined`: adapters of installed packages, and several adapters as one cloud
"""
