"""Resource types: their schemas, and the translation between templates and cloud objects. Pure.

- `base`: the base class of all types; `schema`: schemas of properties and attributes
- `kind_fields`: the fields of each kind of cloud objects, from the properties of its types
- `constraints`, `custom_constraints`, `rules`: checks on properties
- `comparison`: whether an observed value agrees with the desired one; `graph`: implicit dependencies in a template
- `registry`: all types by name; `discovery`: types of installed packages; `missing`: types whose package was removed
- `support`: support status of types; `secrets`: which stacks hold secrets
- `attribute_paths`: JSON paths into the nodes of clusters
- `rollout_policy`, `scaling_adjustments`: settings of rollouts, and of signals that resize groups
- `nested`, `composite`, `groups`: types implemented by a nested stack; `listed_members`: groups as lists of their
  members; `group_limits`: limits on absent members
- `user_data`, `mime`, `signals`, `signing`: input and output of servers; `instance_signals`: signals in
  CloudFormation's policies
- `families`: the types
"""
