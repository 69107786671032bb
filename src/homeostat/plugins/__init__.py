"""Plug-ins: resource types written with `handle_create`, `check_create_complete` and so on, as in Heat.

A plug-in of Heat changes at most its imports: `from homeostat.plugins import attributes, constraints, exception,
properties, resource, support, translation`. The contract is described in docs/reference/plug-ins.md, the reasons in
ADR 0021.

- `loading`: finds plug-ins; `imports`: the names of Heat's modules
- `types`: the classes as resource types, for the planner
- `cloud`, `handlers`, `things`: run the methods, with a record in the database for each resource
- `resource`, `properties`, `attributes`, `constraints`, `support`, `translation`, `exception`, `i18n`, `scheduler`,
  `clients`, `neutron`, `stack_types`: the modules that plug-ins import
"""
