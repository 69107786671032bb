"""Puts the parts together: the only place that knows which adapter serves which port.

- `service`: the commands `homeostat serve`, `homeostat api` and `homeostat worker`
- `api_process`, `worker_process`: one process of each kind
- `database`, `access`, `clouds`, `clustering`: the parts that they need, made from the settings
- `observability`: traces and metrics; `notifications`: reports on OpenStack's message bus
- `policy`, `doctor`: the commands of these names
- `garbage`: how often each process looks for garbage

Imports are inside the functions on purpose: a process loads what its command needs, so that a client command starts
without loading the engine.
"""
