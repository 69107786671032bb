"""Groups of nodes: names and ids that follow from numbers, and single nodes with definitions of their own."""

from typing import Any

import pytest

from homeostat.clustering.decisions.names import node_id, node_name
from homeostat.model.errors import Rejected
from homeostat.resources.families.node_groups import NodeGroup
from tests.component.running import Service, server

SEED = "4d5a4b2e-0000-4000-8000-000000000001"


def nodes(count: int, removed: tuple[int, ...] = (), own: Any = (), **properties: Any) -> dict[str, Any]:
    one = server(name="%node_name%", metadata={"id": "%node_id%", "index": "%node_index%"}, **properties)
    policies = [{"resource_list": [str(number) for number in removed]}]
    wanted = {"count": count, "resource_def": one, "nodes": {"seed": SEED, "format": "n-$3I-$4R"}}
    return {"nodes": {"type": NodeGroup.name, "properties": {**wanted, "removal_policies": policies, "own": own}}}


def single(number: int, **properties: Any) -> dict[str, Any]:
    return {"numbers": [[number, number + 1]], "resource_def": server(**properties)}


class Nodes(Service):
    def __init__(self, count: int, **more: Any) -> None:
        super().__init__()
        self.id = self.begin(nodes(count, **more), internal_types={NodeGroup.name})
        self.rest()

    def change(self, count: int, **more: Any) -> None:
        self.update(self.id, nodes(count, **more), internal_types={NodeGroup.name})
        self.rest()

    @property
    def shown(self) -> dict[str, dict[str, Any]]:
        """Number -> properties of the server."""
        there = {row.name: row.handle for row in self.rows(self.child().id)}
        return {name: self.cloud.things()[handle] for name, handle in there.items()}


def names(service: Nodes) -> dict[str, str]:
    return {number: each["name"] for number, each in sorted(service.shown.items())}


def test_names_ids_and_indexes_follow_from_the_numbers() -> None:
    shown = Nodes(3).shown
    for number, each in shown.items():
        index = int(number) + 1
        assert each["name"] == node_name("n-$3I-$4R", SEED, index)
        assert each["metadata"] == {"id": node_id(SEED, index), "index": str(index)}
    assert len({each["name"] for each in shown.values()}) == 3


def test_a_number_is_never_used_again() -> None:
    service = Nodes(3)
    service.change(2, removed=(2,))
    service.change(3)
    assert list(names(service)) == ["0", "1", "3"]


def test_a_single_node_has_a_definition_of_its_own_whatever_the_others_get() -> None:
    service = Nodes(3, own=[single(1, name="mine", flavor="small")])
    before = service.servers()
    assert (names(service)["1"], service.shown["1"]["flavor"]) == ("mine", "small")
    service.change(3, own=[single(1, name="mine", flavor="small")], flavor="large")
    service.change(4, own=[single(1, name="mine", flavor="small"), single(3, name="last", flavor="small")])
    assert [each["name"] for _, each in sorted(service.shown.items())][1::2] == ["mine", "last"]
    assert set(before) <= set(service.servers())


def test_a_node_that_loses_its_own_definition_is_changed_as_the_others_are() -> None:
    service = Nodes(2, own=[single(0, name="mine", flavor="small", image="i")])
    before = set(service.servers())
    service.change(2)
    assert names(service)["0"] == node_name("n-$3I-$4R", SEED, 1)
    assert set(service.servers()) == before


def test_no_template_of_a_user_may_have_such_a_group() -> None:
    with pytest.raises(Rejected, match="could not be found"):
        Service().begin(nodes(1))


def test_a_wrong_definition_of_a_single_node_is_refused() -> None:
    wrong = {"numbers": [[0, 1]], "resource_def": {"type": "OS::Nova::Server", "properties": {"flavour": "m"}}}
    with pytest.raises(Rejected, match=r"own.*flavour"):
        Service().begin(nodes(1, own=[wrong]), internal_types={NodeGroup.name})
