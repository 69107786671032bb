"""Rows of the things that the service itself provides.

- `records`: software configs, deployments, wait conditions; `plugin_records`: things of types with handlers
- `signal_tallies`: counts of the signals of handles
- `stack_users`, `stored_trusts`: users and trusts in Keystone
- `event_sinks`: the targets of events
"""
