"""HTTP without any knowledge of stacks.

- `connections`, `peers`: from the first byte to the request; the local user of a connection
- `path_convertors`: parameters in the paths of routes
- `inputs`: JSON, booleans and numbers as clients send them; `bodies`: models of request bodies, and their faults
- `heavy_requests`, `rate_limits`: limits of expensive requests, and of each caller's requests
- `fair_places`, `shares`, `connection_shares`: fair shares of scarce resources for addresses, users and projects
- `answer_budget`: size limits of answers
- `responses`, `faults`, `event_streams`, `versions`, `healthcheck`: responses; `addresses`: the addresses in links
"""
