"""Events of stacks, delivered to where users want them.

- `sinks`: the kinds of event sinks
- `delivery`: delivers at least once, in order
- `stack_notifications`: notifications on OpenStack's message bus
"""
