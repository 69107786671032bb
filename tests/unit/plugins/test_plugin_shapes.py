"""Plug-ins in the shapes that others have: what they use of the base class is there, and means the same."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.plugins.lamps import known, service

from homeostat.model.errors import Rejected
from homeostat.plugins import attributes, constraints, exception, properties, resource
from homeostat.plugins.resource import Definition


class Certificate(resource.Resource):
    """Made by a library of its own; the client that it names is not there, and never needed."""

    properties_schema = {
        "common_name": properties.Schema(
            properties.Schema.STRING, required=True, constraints=[constraints.Length(min=1, max=9)]
        ),
        "bits": properties.Schema(
            properties.Schema.INTEGER, default=2048, constraints=[constraints.AllowedValues((1024, 2048))]
        ),
        "names": properties.Schema(properties.Schema.LIST, default=()),
    }
    attributes_schema = {
        "chain": attributes.Schema("Of certificates.", type=attributes.Schema.LIST),
        "first": attributes.Schema("The first of them.", type=attributes.Schema.STRING),
    }
    default_client_name = "nowhere"
    entity = "certificates"

    def __init__(self, name: str, json_snippet: Any, stack: Any) -> None:
        super().__init__(name, json_snippet, stack)
        self.asked = 0

    def _resolve_attribute(self, name: str) -> Any:
        if name == "chain":
            self.asked += 1
            return [self.properties["common_name"], str(self.properties["bits"])]
        return self.attributes["chain"][0] + self.attributes["chain"][1]

    def get_reference_id(self) -> str:
        return f"cert:{self.get_attribute('chain', 0)}"


class Strict(resource.Resource):
    """Checks by what its schema says of each property."""

    properties_schema = {
        "size": properties.Schema(properties.Schema.INTEGER, required=True, update_allowed=True),
        "colour": properties.Schema(properties.Schema.STRING, default="red", immutable=True),
    }

    def validate(self) -> None:
        super().validate()
        found = {
            name: (each.type(), each.required(), each.update_allowed(), each.immutable(), each.default())
            for name, each in self.properties.props.items()
        }
        if self.properties["colour"] == "tell":
            raise exception.StackValidationFailed(message=str(found))


@pytest.fixture(autouse=True)
def types() -> Iterator[None]:
    with known(Certificate=Certificate, Strict=Strict):
        yield


def test_attributes_may_ask_for_one_another() -> None:
    there = service()
    stack_id = there.create(
        {
            "cert": {"type": "Example::Certificate", "properties": {"common_name": "me"}},
            "told": {
                "type": "OS::Heat::TestResource",
                "properties": {
                    "value": {"list_join": [" ", [{"get_attr": ["cert", "first"]}, {"get_resource": "cert"}]]}
                },
            },
        }
    )
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE", there.states(stack_id)
    assert there.row(stack_id, "told").properties["value"] == "me2048 cert:me"
    there.delete(stack_id)
    there.rest()
    assert there.state(stack_id) == "DELETE_COMPLETE", "the client is not asked for: there is nothing of it"


def test_properties_have_what_their_schema_says() -> None:
    with pytest.raises(Rejected) as caught:
        service().create({"s": {"type": "Example::Strict", "properties": {"size": 1, "colour": "tell"}}})
    expected = {"size": ("Integer", True, True, False, None), "colour": ("String", False, False, True, "red")}
    assert str(expected) in str(caught.value)


def test_attributes_are_those_of_the_schema() -> None:
    one = Certificate("c", Definition("c", "Example::Certificate", {"common_name": "me"}), resource.Stack())
    assert set(one.attributes) == {"show", "chain", "first"}
    with pytest.raises(KeyError, match="c: Invalid attribute colour"):
        one.attributes["colour"]
    assert one.attributes["chain"] == one.attributes["chain"] == ["me", "2048"]
    assert one.asked == 1
    one.attributes.reset_resolved_values()
    assert one.attributes["chain"]
    assert one.asked == 2


def test_a_definition_is_frozen_with_other_values() -> None:
    given = Definition("c", "Example::Certificate", {"common_name": "me"}, {"a": 1})
    other = given.freeze(properties={"common_name": "you"})
    assert other.properties(Certificate.properties_schema)["common_name"] == "you"
    assert (other.metadata(), given["Properties"]) == ({"a": 1}, {"common_name": "me"})
