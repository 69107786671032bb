"""Composition root: the only package that knows which adapter serves which port.

- `service`: the commands `homeostat serve`, `homeostat api` and `homeostat worker`
- `api_process`, `worker_process`: the two kinds of processes
- `database`, `access`, `clouds`, `clustering`: the parts of processes, built from the settings
- `observability`: traces and metrics; `notifications`: reports on OpenStack's message bus
- `policy`, `doctor`: the commands with these names
- `garbage`: tuning of garbage collection

Imports are inside the functions on purpose: a process loads only the modules of its command, so that a client command
starts without loading the engine.
"""
