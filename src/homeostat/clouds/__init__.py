"""Clouds: the port that convergence uses, and its adapters.

- `port`: what every cloud does
- `local`, `simulated`, `heat_api`: processes of this machine, a cloud in memory, other services of this kind
- `installed`, `combined`: clouds of other packages; several clouds as one
- `identity`: Keystone
- `credentials`, `outbound`: tokens for calls without a user's request; guarded requests to URLs that users name
"""
