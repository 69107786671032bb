"""Nested stacks as the things behind resources: a group's resource exists when its nested stack does (ADR 0008).

A nested stack lives in the same database as its parent, so its creation and the record of that are one transaction: no
stack can be created twice, and no token is needed to find a stack again.

- `execution`: executes steps on nested stacks
- `revisions`: the next revision of a nested stack; `group_revisions`: of a group's stack; `removal_requests`: the
  members that a group was asked to remove; `overtaken_revisions`: the same by overtaken updates; `template_stacks`: the
  revision of a template resource's stack
- `observation`: a parent's view of its nested stacks; `attributes`: the members and outputs that a parent may read
- `tree_size`: the limit on the resources of a root stack including its nested stacks
"""
