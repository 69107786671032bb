"""What is read of a member that a group does not have is an error, never null."""

from typing import Any

import pytest

from homeostat.api.orchestration import outputs
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import Service, double, group, template

CHAIN = {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Heat::RandomString"] * 2}}
SCALING = {
    "type": "OS::Heat::AutoScalingGroup",
    "properties": {"min_size": 2, "max_size": 3, "resource": double(value="v")},
}
OWNERS: dict[str, dict[str, Any]] = {
    "group": group(2, double(value="v")),
    "scaling group": SCALING,
    "chain": CHAIN,
}


@pytest.mark.parametrize("path", [["resource.7"], ["resource.7.output"], ["resource.7", "output"]])
@pytest.mark.parametrize("owner", OWNERS)
def test_who_reads_an_absent_member_fails_with_it(owner: str, path: list[str]) -> None:
    service = Service()
    resources = {"g": OWNERS[owner], "reader": double(value={"get_attr": ["g", *path]})}
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    row = service.row(stack_id, "reader")
    assert (row.handle, "Member '7' not found in group resource 'g'." in row.reason) == ("", True)


def test_a_group_that_gets_larger_has_them_and_one_that_gets_smaller_has_not() -> None:
    def read(count: int) -> dict[str, Any]:
        return {
            "g": group(count, double(value="v%index%")),
            "reader": double(value={"get_attr": ["g", "resource.2.output"]}),
        }

    service = Service()
    stack_id = service.create(read(3))
    service.rest()
    assert service.row(stack_id, "reader").properties["value"] == "v2"
    service.update(stack_id, read(2))
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert service.row(stack_id, "reader").properties["value"] == "v2", "it keeps what it had"
    service.update(stack_id, read(4))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_an_output_that_reads_an_absent_member_has_an_error() -> None:
    service = Service()
    whole = {**template({"g": OWNERS["group"]}), "outputs": {"it": {"value": {"get_attr": ["g", "resource.7.output"]}}}}
    stack_id = service.stack_service.create("p", None, "web", StackRequest(whole))
    service.rest()
    with service.db.read() as tx:
        row = service.stack(stack_id)
        (shown,) = outputs.resolved(tx, row, Graphs().described(tx, row))
    assert shown["output_value"] is None
    assert "Member '7' not found in group resource 'g'." in shown["output_error"]
