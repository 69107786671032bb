"""Resource types: what a template may contain, and what it means to a cloud. Pure.

- `base`: what a type is; `schema`: its properties and attributes
- `constraints`, `custom_constraints`, `rules`: checks on them
- `comparison`: whether an observed value is the wanted one; `graph`: dependencies that a template leaves unsaid
- `registry`: all types by name; `discovery`: those of installed packages; `missing`: those whose package is gone
- `support`: how far each is supported; `secrets`: which properties are secret
- `nested`, `composite`, `groups`: types that are stacks of their own
- `user_data`, `mime`, `signals`, `signing`: what servers get and send
- `builtin_kinds`: kinds that the service provides itself
- `families`: the types
"""
