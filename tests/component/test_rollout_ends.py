"""How rollouts end with their stack: cancelled, rolled back as a whole, and deep in a tree of stacks.

After the end no member has half of it: those that were brought back have exactly the old metadata, and nothing is
left of the rollout when the next update begins.
"""

import json
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.builtin.signals import metadata_of
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.stacks import rollouts
from tests.component.running import PROJECT, Service, server, template
from tests.component.test_metadata_rollouts import resources

COUNT = 3


class Tree(Service):
    """A stack at rest with a group of which one member after the other gets new metadata; options — of its creation.

    depth — how many nested templates are around the group.
    """

    def __init__(self, depth: int = 0, **options: Any) -> None:
        super().__init__()
        self.depth = depth
        self.id = self.begin(self.wanted("1"), files=self.files(), **options)
        self.live(5)
        self.signal(self.inner, "handle")
        self.rest()
        assert (self.state(self.id), self.values()) == ("CREATE_COMPLETE", "111")

    def wanted(self, value: str) -> dict[str, Any]:
        if not self.depth:
            return resources(value, COUNT)
        return {"tier": {"type": "tier1.yaml", "properties": {"v": value}}}

    def files(self) -> dict[str, str]:
        """`tier1.yaml` has the next one inside, and the last one the group."""
        parameters = {"parameters": {"v": {"type": "string"}}}
        found = {}
        for level in range(1, self.depth + 1):
            inside: dict[str, Any] = {
                "tier": {"type": f"tier{level + 1}.yaml", "properties": {"v": {"get_param": "v"}}}
            }
            if level == self.depth:
                inside = resources("", COUNT)
                inside["group"]["metadata"] = {"v": {"get_param": "v"}}
            found[f"tier{level}.yaml"] = json.dumps({**template(inside), **parameters})
        return found

    def change(self, value: str) -> None:
        self.update(self.id, self.wanted(value), files=self.files())
        self.live(1)

    @property
    def inner(self) -> str:
        """The stack of the group."""
        found = self.id
        for _ in range(self.depth):
            found = self.row(found, "tier").handle
        return str(found)

    @property
    def members(self) -> list[str]:
        rows = self.rows(self.row(self.inner, "group").handle)
        return [row.handle for row in sorted(rows, key=lambda row: int(row.name))]

    def values(self) -> str:
        stack_id, members = self.inner, self.members
        with self.db.read() as tx:
            found = [rollouts.metadata_of(tx, stack_id, "group", each) for each in members]
        shown = [(row.metadata if row.instance_id is None else row.new_metadata) for row in found if row is not None]
        return "".join(each["v"] for each in shown)

    def report(self, member: int, status: str = "SUCCESS") -> None:
        self.signal(self.inner, "handle", {"status": status, "reason": "said so", "data": self.members[member]})
        self.live(0.1)

    def left(self) -> list[Any]:
        """Rows about rollouts, and groups that have new metadata for their members."""
        group = schema.resource
        with self.db.read() as tx:
            return [
                *tx.execute(select(schema.active_metadata_updates)),
                *tx.execute(select(schema.rollout)),
                *tx.execute(select(group.c.name).where(group.c.new_metadata.is_not(None))),
            ]

    def goes_on_afterwards(self) -> None:
        """The next update finds nothing of the one before, and reaches all members."""
        assert self.left() == []
        self.change("3")
        assert self.values() == "311"
        for number in range(COUNT):
            self.report(number)
        self.rest()
        assert (self.values(), self.state(self.id), self.left()) == ("333", "UPDATE_COMPLETE", [])


@pytest.mark.parametrize("depth", [1, 2])
def test_a_rollout_deep_in_a_tree_of_stacks(depth: int) -> None:
    service = Tree(depth)
    service.change("2")
    seen = [service.values()]
    assert [each.deadline for each in service.stacks() if each.status == "IN_PROGRESS"] == [None] * (depth + 1)
    service.live(30)
    for number in range(COUNT):
        service.report(number)
        seen.append(service.values())
    assert seen == ["211", "221", "222", "222"]
    service.rest()
    assert (service.state(service.id), service.left()) == ("UPDATE_COMPLETE", [])


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_gate_that_says_no_fails_all_stacks_around(depth: int) -> None:
    service = Tree(depth)
    service.change("2")
    service.report(0)
    service.report(1, "FAILURE")
    service.rest()
    assert (service.values(), service.state(service.id)) == ("111", "UPDATE_FAILED")
    service.goes_on_afterwards()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_stack_with_rollback_goes_back_as_a_whole(depth: int) -> None:
    service = Tree(depth, disable_rollback=False)
    service.change("2")
    service.report(0)
    service.report(1, "FAILURE")
    service.rest()
    assert (service.values(), service.state(service.id)) == ("111", "ROLLBACK_COMPLETE")
    service.goes_on_afterwards()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_cancelled_update_is_rolled_back(depth: int) -> None:
    service = Tree(depth)
    service.change("2")
    service.report(0)
    assert service.values() == "221"
    service.stack_service.cancel(service.id, roll_back=True)
    service.live(1)
    assert service.values() == "111"
    service.rest()
    assert (service.values(), service.state(service.id)) == ("111", "ROLLBACK_COMPLETE")
    service.goes_on_afterwards()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_update_that_is_cancelled_without_rollback_leaves_no_member_with_the_new_metadata(depth: int) -> None:
    service = Tree(depth)
    service.change("2")
    service.report(0)
    service.stack_service.cancel(service.id, roll_back=False)
    assert service.values() == "111", "in the transaction of the request"
    service.rest()
    service.live(10)
    assert (service.values(), service.state(service.id)) == ("111", "UPDATE_FAILED")
    assert "its stack is cancelled; 2 members have the old metadata again" in service.row(service.inner, "group").reason
    service.goes_on_afterwards()


def test_a_paused_rollout_of_a_cancelled_update_is_over_too() -> None:
    service = Tree()
    service.change("2")
    service.rollouts.pause(service.row(service.id, "group").key)
    service.stack_service.cancel(service.id, roll_back=False)
    service.rest()
    service.live(10)
    assert (service.values(), service.state(service.id)) == ("111", "UPDATE_FAILED")
    service.goes_on_afterwards()


def groups(value: str, other: str) -> dict[str, Any]:
    """A group of groups of servers. value — of the metadata of the inner ones; other — of the outer one's."""
    inner = {
        "type": "OS::Heat::ResourceGroup",
        "metadata": {"v": value},
        "properties": {"count": 2, "resource_def": server(), "metadata_update_pattern": "rolling"},
    }
    found = resources("", 2)
    found["group"]["properties"] |= {"resource_def": inner, "index_var": "%none%"}
    found["group"]["metadata"] = {"outer": other}
    return found


class Groups(Service):
    """A group of groups at rest."""

    def __init__(self) -> None:
        super().__init__()
        self.id = self.begin(groups("1", "1"))
        self.live(5)
        self.signal(self.id, "handle")
        self.rest()
        assert self.state(self.id) == "CREATE_COMPLETE"

    def stacks_of(self) -> list[str]:
        """The inner groups' stacks, which are the members of the outer one."""
        rows = self.rows(self.row(self.id, "group").handle)
        return [row.handle for row in sorted(rows, key=lambda row: int(row.name))]

    def servers_of(self, number: int) -> list[str]:
        return sorted(row.handle for row in self.rows(self.stacks_of()[number]))

    def metadata(self) -> list[str]:
        """What the servers of each inner group read as their own."""
        found = []
        for number in range(2):
            servers = self.servers_of(number)
            with self.db.read() as tx:
                owners = records.owners_of(tx, servers)
                read = [metadata_of(tx, PROJECT, each, each.parent_key) for each in owners]
            found.append(" ".join(sorted(f"{each.get('v')}{each.get('outer')}" for each in read)))
        return found

    def active(self) -> int:
        with self.db.read() as tx:
            return len(tx.execute(select(schema.active_metadata_updates)).all())


def test_members_of_groups_that_are_members_get_the_metadata_of_both() -> None:
    service = Groups()
    assert service.metadata() == ["11 11", "11 11"]
    service.update(service.id, groups("2", "1"))
    service.rest()
    assert (service.metadata(), service.state(service.id), service.active()) == (["21 21"] * 2, "UPDATE_COMPLETE", 0)


@pytest.mark.parametrize("by", ["stack", "server"])
def test_a_member_that_is_a_group_is_one_member_of_a_rollout(by: str) -> None:
    service = Groups()
    service.update(service.id, groups("1", "2"))
    service.live(1)
    assert service.metadata() == ["12 12", "11 11"]
    for number in (0, 1):
        member = service.stacks_of()[number] if by == "stack" else service.servers_of(number)[0]
        service.signal(service.id, "handle", {"data": member})
        service.live(0.1)
        assert service.metadata()[1] == "12 12"
    service.rest()
    assert (service.metadata(), service.state(service.id), service.active()) == (["12 12"] * 2, "UPDATE_COMPLETE", 0)


def test_a_rollout_of_groups_of_groups_that_fails_leaves_none_with_the_new_metadata() -> None:
    service = Groups()
    service.update(service.id, groups("1", "2"))
    service.live(1)
    service.signal(service.id, "handle", {"data": service.servers_of(0)[1], "status": "FAILURE", "reason": "no"})
    service.live(1)
    assert (service.metadata(), service.active()) == (["11 11"] * 2, 0)
    service.rest()
    assert service.state(service.id) == "UPDATE_FAILED"
