"""A type with handlers, and the other side that it speaks to: lamps in a shop, which remembers every call."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.component.running import PROJECT, Service

from homeostat.clouds.combined import JoinedCloud
from homeostat.plugins import attributes, constraints, exception, properties, resource, support
from homeostat.plugins.cloud import PluginClouds
from homeostat.plugins.types import plugin_type
from homeostat.resources import registry
from homeostat.resources.discovery import Offer

TYPE = "Example::Lamp"


class Shop:
    """lamps — id -> values; calls — names of handlers called, in order; plans — handler -> errors that it raises, one a
    call; warm_up — polls until a lamp is on."""

    def __init__(self) -> None:
        self.lamps: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.plans: dict[str, list[Exception]] = {}
        self.warm_up = 0
        self.made = 0

    def called(self, handler: str) -> None:
        self.calls.append(handler)
        planned = self.plans.get(handler)
        if planned:
            raise planned.pop(0)


SHOP = Shop()


class Lamp(resource.Resource):
    """A lamp in the shop.

    More about it.
    """

    PROPERTIES = (COLOUR, WATTS, PLACE, SOCKET) = ("colour", "watts", "place", "socket")
    ATTRIBUTES = (POWER,) = ("power",)
    support_status = support.SupportStatus(version="5.0.0")
    properties_schema = {
        COLOUR: properties.Schema(
            properties.Schema.STRING,
            "Colour of its light.",
            default="white",
            constraints=[constraints.AllowedValues(["white", "red", "blue"])],
            update_allowed=True,
        ),
        WATTS: properties.Schema(properties.Schema.INTEGER, required=True, update_allowed=True),
        PLACE: properties.Schema(properties.Schema.STRING),
        SOCKET: properties.Schema(
            properties.Schema.MAP, schema={"kind": properties.Schema(properties.Schema.STRING, default="E27")}
        ),
    }
    attributes_schema = {POWER: attributes.Schema("What it draws.", type=attributes.Schema.INTEGER)}

    def validate(self) -> None:
        super().validate()
        if self.properties[self.PLACE] == "bath" and (self.properties[self.WATTS] or 0) > 60:
            raise exception.StackValidationFailed(message="too bright for a bath")

    def handle_create(self) -> dict[str, Any]:
        SHOP.called("handle_create")
        SHOP.made += 1
        lamp_id = f"lamp-{SHOP.made}"
        SHOP.lamps[lamp_id] = {"name": self.physical_resource_name(), "polls": SHOP.warm_up, **dict(self.properties)}
        self.resource_id_set(lamp_id)
        self.data_set("serial", "s-1", redact=True)
        SHOP.called("after the id")
        return {"lamp": lamp_id}

    def check_create_complete(self, token: dict[str, Any]) -> bool:
        SHOP.called("check_create_complete")
        assert token == {"lamp": self.resource_id}
        assert self.data() == {"serial": "s-1"}
        lamp = SHOP.lamps[token["lamp"]]
        lamp["polls"] -= 1
        return bool(lamp["polls"] < 0)

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Mapping[str, Any]) -> Any:
        SHOP.called(f"handle_update {prop_diff}")
        assert tmpl_diff.properties_changed()
        if prop_diff.get(self.COLOUR) == "blue":
            raise resource.UpdateReplace(self.name)
        SHOP.lamps[str(self.resource_id)].update(prop_diff)

    def handle_delete(self) -> None:
        SHOP.called(f"handle_delete {self.resource_id}")
        mine = [each for each, lamp in SHOP.lamps.items() if lamp["name"] == self.physical_resource_name()]
        for each in {self.resource_id, *mine} - {None}:
            SHOP.lamps.pop(str(each), None)

    def handle_signal(self, details: Any) -> str:
        SHOP.called(f"handle_signal {details}")
        if details.get("nothing"):
            raise resource.NoActionRequired(self.name, "no reason")
        SHOP.lamps[str(self.resource_id)]["told"] = details
        return f"blinks {details.get('times')} times"

    def handle_check(self) -> None:
        SHOP.called("handle_check")
        if self.resource_id not in SHOP.lamps:
            raise exception.EntityNotFound(entity="Lamp", name=self.resource_id)
        if SHOP.lamps[self.resource_id].get("broken"):
            raise exception.Error("it flickers")

    def get_live_state(self, resource_properties: Any) -> dict[str, Any]:
        return {self.COLOUR: SHOP.lamps[str(self.resource_id)][self.COLOUR]}

    def _resolve_attribute(self, name: str) -> Any:
        return SHOP.lamps[str(self.resource_id)][self.WATTS] if name == self.POWER else None

    def _show_resource(self) -> Any:
        return {name: SHOP.lamps[str(self.resource_id)][name] for name in (self.COLOUR, self.WATTS)}


def resource_mapping() -> dict[str, type[resource.Resource]]:
    return {TYPE: Lamp}


@contextmanager
def known(**types: type[resource.Resource]) -> Iterator[None]:
    """These types are in the register."""
    wanted: dict[str, type[resource.Resource]] = {
        TYPE: Lamp,
        **{f"Example::{name}": each for name, each in types.items()},
    }
    registry.add([Offer("tests", [plugin_type(name, each) for name, each in wanted.items()])])
    try:
        yield
    finally:
        registry.take_away(["tests"])


def service(**types: type[resource.Resource]) -> Service:
    """A whole service whose clouds have these types; handlers run in the thread that asks."""
    from homeostat.plugins import loading

    made = Service()
    everything = PluginClouds(made.db, loading.classes(), lambda _project: made.cloud)
    made.cloud = JoinedCloud(made.cloud, everything.of(PROJECT))  # type: ignore[assignment]
    return made


def lamp(**given: Any) -> dict[str, Any]:
    return {"type": TYPE, "properties": {"watts": 40, **given}}
