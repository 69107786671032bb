"""Rows of the things that the service provides or keeps itself.

- `records`: software configs, deployments, wait conditions; `plugin_records`: things of types with handlers
- `signal_tallies`: what is counted of the signals of handles
- `stack_users`, `stored_trusts`: users and trusts in Keystone
- `event_sinks`: the targets of events
"""
