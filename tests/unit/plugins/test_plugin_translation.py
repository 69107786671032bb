"""Rules that bring what a template says to what handlers read."""

from typing import Any

import pytest
from tests.component.running import Service
from tests.unit.plugins.lamps import known, service

from homeostat.model.errors import Rejected
from homeostat.plugins import properties, resource, translation
from homeostat.plugins.exception import ResourcePropertyConflict
from homeostat.plugins.translation import TranslationRule as Rule
from homeostat.plugins.translation import resolved, translated
from homeostat.plugins.types import plugin_type

NETS = ["networks", "network"]


@pytest.mark.parametrize(
    ("rules", "values", "expected"),
    [
        ([Rule(None, Rule.REPLACE, ["new"], value_name="old")], {"old": 1, "new": None}, {"old": None, "new": 1}),
        ([Rule(None, Rule.REPLACE, ["new"], value_name="old")], {"old": None, "new": 2}, {"old": None, "new": 2}),
        (
            [Rule(None, Rule.REPLACE, ["a", "b"], value_path=["c"])],
            {"a": {"b": None}, "c": 3},
            {"a": {"b": 3}, "c": None},
        ),
        (
            [Rule(None, Rule.REPLACE, NETS, value_name="uuid")],
            {"networks": [{"uuid": "x", "network": None}, {"uuid": None, "network": "y"}]},
            {"networks": [{"uuid": None, "network": "x"}, {"uuid": None, "network": "y"}]},
        ),
        ([Rule(None, Rule.ADD, ["tags"], value=["mine"])], {"tags": ["yours"]}, {"tags": ["yours", "mine"]}),
        ([Rule(None, Rule.ADD, ["tags"], value=["mine"])], {"tags": None}, {"tags": ["mine"]}),
        ([Rule(None, Rule.DELETE, ["gone"])], {"gone": 1, "kept": 2}, {"gone": None, "kept": 2}),
        (
            [Rule(None, Rule.DELETE, ["a"]), Rule(None, Rule.REPLACE, ["b"], value_name="a")],
            {"a": 1, "b": None},
            {"a": None, "b": 1},
        ),
        (
            [Rule(None, Rule.RESOLVE, ["name"], finder="find")],
            {"name": "left to handlers"},
            {"name": "left to handlers"},
        ),
    ],
)
def test_rules(rules: list[Rule], values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert translated(rules, values) == expected


def test_old_and_new_names_exclude_one_another() -> None:
    with pytest.raises(ResourcePropertyConflict, match="new, old"):
        translated([Rule(None, Rule.REPLACE, ["new"], value_name="old")], {"old": 1, "new": 2})


def test_names_become_ids_also_in_lists() -> None:
    rules = [Rule(None, Rule.RESOLVE, NETS, finder="f"), Rule(None, Rule.RESOLVE, ["groups"], finder="g")]
    values = {"networks": [{"network": "a"}, {"network": None}], "groups": ["x", "y"]}
    found = resolved(rules, values, lambda rule, value: f"{rule.finder}-{value}")
    assert found == {"networks": [{"network": "f-a"}, {"network": None}], "groups": ["g-x", "g-y"]}


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "Invent", "translation_path": ["a"]},
        {"rule": Rule.REPLACE, "translation_path": []},
        {"rule": Rule.REPLACE, "translation_path": ["a"], "value_name": "b", "value_path": ["c"]},
        {"rule": Rule.ADD, "translation_path": ["a"], "value": "no list"},
        {"rule": Rule.RESOLVE, "translation_path": ["a"]},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Rule(None, **options)


class Plug(resource.Resource):
    properties_schema = {
        name: properties.Schema(properties.Schema.STRING, update_allowed=name != "network")
        for name in ("network", "net", "title")
    }
    seen: list[Any] = []

    def translation_rules(self, props: Any) -> list[Rule]:
        client = self.client_plugin("neutron")
        return [
            translation.TranslationRule(props, Rule.REPLACE, ["network"], value_name="net"),
            translation.TranslationRule(
                props, Rule.RESOLVE, ["network"], client_plugin=client, finder="find_by_name_or_id", entity="network"
            ),
        ]

    def handle_create(self) -> None:
        self.seen.append(self.properties["network"])
        self.resource_id_set("plug")

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> None:
        self.seen.append(dict(prop_diff))


def plug(**given: str) -> dict[str, Any]:
    return {"plug": {"type": "Example::Plug", "properties": given}}


def test_names_are_resolved_by_the_cloud_and_a_new_name_of_a_property_is_no_change() -> None:
    Plug.seen = []
    with known(Plug=Plug):
        there: Service = service()
        stack_id = there.create({"net": {"type": "OS::Neutron::Net", "properties": {"name": "lan"}}})
        (net_id,) = there.cloud._first.things("network")  # type: ignore[attr-defined]
        other = there.create(plug(net="lan"), name="other")
        assert there.state(other) == "CREATE_COMPLETE"
        assert Plug.seen == [net_id]
        there.update(other, plug(network="lan"))
        assert there.state(other) == "UPDATE_COMPLETE"
        assert Plug.seen == [net_id]
        there.update(other, plug(network="lan", title="t"))
        assert Plug.seen == [net_id, {"title": "t"}]
        there.delete(stack_id)


def test_old_and_new_name_together_are_refused() -> None:
    kind = plugin_type("Example::Plug", Plug)()
    with pytest.raises(Rejected, match="Cannot define the following properties at the same time: network, net"):
        kind.check({"net": "a", "network": "b"})
