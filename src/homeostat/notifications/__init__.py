"""Delivery of stack events to users' sinks and to OpenStack's message bus.

- `sinks`: the kinds of event sinks
- `delivery`: delivery at least once, in order
- `stack_notifications`: notifications on OpenStack's message bus
"""
