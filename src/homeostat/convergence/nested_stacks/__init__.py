"""Nested stacks as the things behind resources: a group's resource is there when its nested stack is (ADR 0008).

A nested stack lives in the same database as its parent, so creating it and knowing of it are one transaction: nothing
can be made twice, and no token is needed to find it again.

- `execution`: executes steps on nested stacks
- `revisions`: the next revision of a nested stack; `group_revisions`: of a group's;
  `removal_requests`: whom it was asked to remove; `overtaken_revisions`: also by updates that others overtook;
  `template_stacks`: of a resource with a template
- `observation`: what a parent sees of its nested stacks; `attributes`: the members and outputs that it may read
- `tree_size`: the limit on the resources of a root stack with everything nested in it
"""
