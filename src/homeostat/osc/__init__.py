"""Plug-in of the `openstack` command, for what python-heatclient lacks. It uses only the service's HTTP API.

`plugin` is the entry point, `service` is the client of the API, `v1` has the commands.
"""
