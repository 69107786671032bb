"""Plug-in of the `openstack` command, with commands that python-heatclient lacks. Uses only the service's HTTP API.

`plugin` is the entry point, `service` is the client of the API, `v1` has the commands.
"""
