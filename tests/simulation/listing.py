"""Users who update the own stacks of groups with templates that list their members."""

import random
from dataclasses import replace
from typing import Any

from homeostat.desired.texts import GENERATED, group_text
from homeostat.resources import groups
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.stacks import StackService
from homeostat.store.stacks import revisions, stacks

VALUES = {"OS::Heat::TestResource": "value", "OS::Nova::Server": "name"}
"""By type of members, the property that a user changes."""


def list_members(rng: random.Random, service: StackService, stack_id: str) -> bool:
    """Send the template of a group's stack back with one member changed, and perhaps another one in place of a second.

    The size stays, so that it stays within the bounds of the group. Return whether a group was there that has members.
    """
    with service._db.read() as tx:
        row = stacks.get(tx, stack_id)
        group = revisions.group_of(tx, stack_id, row.revision) if row is not None else None
    if group is None or not groups.size_of(group):
        return False
    whole = replace(group, count=groups.size_of(group))
    resources: dict[str, Any] = dict(group_text(whole))
    names = sorted(resources, key=int)
    name = rng.choice(names)
    one = resources[name]
    changed = VALUES.get(one["type"], "given")
    resources[name] = {**one, "properties": {**one["properties"], changed: f"listed-{rng.randint(0, 1)}"}}
    if rng.random() < 0.3:
        gone = rng.choice(names)
        next_name = str(groups.names_end(whole.count + 1, whole.skip) - 1)
        resources[next_name] = resources.pop(gone)
    service.update(stack_id, StackRequest({**GENERATED, "resources": resources}), patch=rng.random() < 0.7)
    return True
