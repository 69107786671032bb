"""Plug-in of the `openstack` command: what upstream's client lacks. Knows the service by its HTTP API alone.

`plugin` is found by the client, `service` asks the API, `v1` has the commands.
"""
