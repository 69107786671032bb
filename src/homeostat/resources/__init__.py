"""Resource types: what a template may contain, and how it translates to things of a cloud. Pure.

- `base`: the base class of all types; `schema`: schemas of properties and attributes
- `constraints`, `custom_constraints`, `rules`: checks on properties
- `comparison`: whether an observed value agrees with the desired one; `graph`: implicit dependencies in a template
- `registry`: all types by name; `discovery`: types of installed packages; `missing`: types whose package was removed
- `support`: support status of types; `secrets`: which stacks hold secrets
- `attribute_paths`: JSON paths into the nodes of clusters
- `rollout_policy`, `scaling_adjustments`: what templates say of rollouts, and of signals that resize groups
- `nested`, `composite`, `groups`: types that are implemented by a stack of their own; `listed_members`: groups as lists
  of their members; `group_limits`: limits on absent members
- `user_data`, `mime`, `signals`, `signing`: what servers receive and send; `instance_signals`: signals in
  CloudFormation's policies
- `families`: the types
"""
