"""What plug-ins written for Heat use besides the base class: other resources, tasks, schemas that are maps,
errors to let pass, answers that change."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
from sqlalchemy import select
from tests.component.running import PROJECT, Service
from tests.unit.plugins.lamps import known, service

from homeostat.api.orchestration import outputs
from homeostat.model.errors import Rejected
from homeostat.plugins import attributes, clients, exception, neutron, properties, resource, scheduler, stack_types
from homeostat.plugins.types import plugin_type
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.stacks import stacks


class Gone(Exception):
    """The other side's way to say that there is no such thing."""


class Office:
    """The other side. things — id -> values; lingers — looks for which a deleted thing is still there; calls."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Any]] = {}
        self.lingers = 2
        self.calls: list[str] = []
        self.broken: Exception | None = None

    def make(self, **values: Any) -> str:
        number = f"thing-{len(self.calls)}"
        self.calls.append("make")
        self.things[number] = values
        return number

    def look(self, number: str) -> dict[str, Any]:
        if number not in self.things:
            raise Gone(number)
        found = self.things[number]
        if "leaves" in found:
            found["leaves"] -= 1
            if found["leaves"] < 0:
                del self.things[number]
                raise Gone(number)
        return found

    def drop(self, number: str) -> None:
        self.calls.append("drop")
        if number not in self.things:
            raise Gone(number)
        self.things[number].setdefault("leaves", self.lingers)


OFFICE = Office()


class OfficeClient(clients.ClientPlugin):
    """Knows the errors of its side by their class."""

    def _create(self, version: Any = None) -> Office:
        return OFFICE

    def is_not_found(self, error: BaseException) -> bool:
        return isinstance(error, Gone)


class Desk(resource.Resource):
    """Others ask it for what they need; its own side keeps nothing of it."""

    properties_schema = {"room": properties.Schema(properties.Schema.STRING, required=True, default="hall")}

    def door(self) -> str:
        return f"{self.properties['room']}/{self.name}"


class Letter(resource.Resource):
    """Its properties are described by maps; it finds the desk that it lies on among the stack's resources."""

    default_client_name = "office"
    properties_schema: ClassVar[Any] = {
        "desk": {"Type": "String", "Required": True, "Description": "Where it lies."},
        "weight": {"Type": "Integer", "MinValue": "1", "MaxValue": 20, "Default": 2, "UpdateAllowed": True},
        "lines": {"Type": "List", "Schema": {"Type": "Map", "Schema": {"text": {"Type": "String", "MaxLength": 9}}}},
        "kind": {"Type": "String", "AllowedValues": ["letter", "bill"], "AllowedPattern": "[a-z]+"},
    }
    attributes_schema = {
        "place": attributes.Schema("Where it lies."),
        "smudged": attributes.Schema("Cannot always be read."),
    }

    def validate(self) -> Any:
        return super().validate() or ("bills have no lines" if self._is_bill_with_lines() else None)

    def _is_bill_with_lines(self) -> bool:
        return self.properties["kind"] == "bill" and bool(self.properties["lines"])

    def handle_create(self) -> list[str]:
        desk = self.stack.resource_by_refid(self.properties["desk"])
        self.resource_id_set(self.client().make(place=desk.door() if isinstance(desk, Desk) else "floor"))
        return ["to be stamped", "to be sealed"]

    def check_create_complete(self, steps: list[str]) -> bool:
        steps.pop()
        return not steps

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Mapping[str, Any]) -> None:
        self.client().look(self.resource_id).update(prop_diff)

    def handle_delete(self) -> scheduler.TaskRunner | None:
        try:
            self.client().drop(self.resource_id)
        except Gone as error:
            self.client_plugin().ignore_not_found(error)
            return None
        task = scheduler.TaskRunner(self._leaving)
        task.start()
        return task

    def _leaving(self) -> Iterator[None]:
        with self.client_plugin().ignore_not_found:
            while True:
                yield
                self.client().look(self.resource_id)

    def check_delete_complete(self, task: scheduler.TaskRunner | None) -> bool:
        return task is None or task.step()

    def _resolve_attribute(self, name: str) -> Any:
        if name == "smudged" and OFFICE.broken is not None:
            raise OFFICE.broken
        return self.client().look(self.resource_id)["place"]


DESK = {"type": "Example::Desk"}
LETTER = {"type": "Example::Letter", "properties": {"desk": {"get_resource": "desk"}}}


@pytest.fixture(autouse=True)
def types(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    OFFICE.__init__()  # type: ignore[misc]
    monkeypatch.setitem(clients._made_here, "office", OfficeClient)
    with known(Desk=Desk, Letter=Letter):
        yield


def outputs_of(there: Service, stack_id: str) -> dict[str, Any]:
    """Outputs of a stack by name: a value, or the error in its place."""
    with there.db.read() as tx:
        row = stacks.get(tx, stack_id)
        assert row is not None
        shown = outputs.resolved(tx, row, Graphs().described(tx, row))
    return {each["output_key"]: each.get("output_error", each["output_value"]) for each in shown}


def create(there: Service, resources: dict[str, Any], **out: Any) -> str:
    document = {
        "heat_template_version": "wallaby",
        "resources": resources,
        "outputs": {name: {"value": value} for name, value in out.items()},
    }
    stack_id = there.stack_service.create(PROJECT, None, "web", StackRequest(document, disable_rollback=True))
    there.work()
    return stack_id


def test_a_resource_asks_another_one_of_its_stack() -> None:
    there = service()
    stack_id = create(there, {"desk": DESK, "letter": LETTER}, place={"get_attr": ["letter", "place"]})
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE", there.states(stack_id)
    assert outputs_of(there, stack_id) == {"place": "hall/desk"}


def test_other_resources_can_be_read_only() -> None:
    class Thief(Desk):
        def handle_create(self) -> None:
            assert sorted(self.stack) == ["desk"]
            assert self.stack["desk"].has_interface("Example::Desk")
            assert "nothing" not in self.stack
            assert self.stack.resource_by_refid("nothing") is None
            self.stack["desk"].data_set("key", "mine")

    with known(Desk=Desk, Thief=Thief):
        there = service()
        stack_id = create(there, {"desk": DESK, "thief": {"type": "Example::Thief", "depends_on": "desk"}})
        there.rest()
        assert there.state(stack_id) == "CREATE_FAILED"
        assert "is not supported" in there.stack(stack_id).reason


def test_what_a_check_has_changed_is_what_the_next_one_is_given() -> None:
    there = service()
    stack_id = create(there, {"desk": DESK, "letter": LETTER})
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert OFFICE.calls == ["make"]


def test_a_deletion_may_give_a_task() -> None:
    there = service()
    stack_id = create(there, {"desk": DESK, "letter": LETTER})
    there.rest()
    there.delete(stack_id)
    assert there.state(stack_id) == "DELETE_IN_PROGRESS", "the letter is still there"
    there.rest()
    assert there.state(stack_id) == "DELETE_COMPLETE"
    assert OFFICE.things == {}


def test_an_error_that_is_not_meant_is_raised_again() -> None:
    plugin = OfficeClient(resource.Context())
    plugin.ignore_not_found(Gone("one"))
    with plugin.ignore_not_found, plugin.ignore_conflict_and_not_found:
        raise Gone("one")
    for ignoring in (plugin.ignore_not_found, plugin.ignore_conflict_and_not_found):
        with pytest.raises(ValueError, match="another"):
            ignoring(ValueError("another"))
        with pytest.raises(ValueError, match="another"), ignoring:
            raise ValueError("another")


def test_schemas_may_be_maps() -> None:
    kind = plugin_type("Example::Letter", Letter)()
    assert kind.check({"desk": "d", "weight": "3", "lines": [{"text": "hello"}]})["weight"] == 3
    for wrong in (
        {},
        {"desk": "d", "weight": 21},
        {"desk": "d", "kind": "card"},
        {"desk": "d", "lines": [{"text": "x" * 10}]},
    ):
        with pytest.raises(Rejected):
            kind.check(wrong)
    with pytest.raises(ValueError, match="unknown keys Colour"):
        properties.schemata({"x": {"Type": "String", "Colour": "red"}})


def test_a_text_from_validate_is_what_is_wrong() -> None:
    bill = {"type": "Example::Letter", "properties": {"desk": "d", "kind": "bill", "lines": [{"text": "one"}]}}
    with pytest.raises(Rejected, match="bills have no lines"):
        create(service(), {"letter": bill})


def test_a_required_property_with_a_default_may_be_left_out() -> None:
    there = service()
    stack_id = create(there, {"desk": DESK})
    assert there.state(stack_id) == "CREATE_COMPLETE"


def test_an_attribute_that_cannot_be_read_is_an_error_of_that_attribute() -> None:
    OFFICE.broken = ValueError("ink everywhere")
    there = service()
    stack_id = create(
        there,
        {"desk": DESK, "letter": LETTER},
        place={"get_attr": ["letter", "place"]},
        smudged={"get_attr": ["letter", "smudged"]},
        all={"get_attr": ["letter"]},
    )
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE", "the resource is well"
    fault = "resources.letter.attributes.smudged: ValueError: ink everywhere"
    assert outputs_of(there, stack_id) == {"place": "hall/desk", "smudged": fault, "all": fault}


def test_who_needs_that_attribute_fails_with_the_place() -> None:
    OFFICE.broken = ValueError("ink everywhere")
    there = service()
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["letter", "smudged"]}}}
    stack_id = create(there, {"desk": DESK, "letter": LETTER, "reader": reader})
    there.rest()
    assert there.state(stack_id) == "CREATE_FAILED"
    assert "resources.letter.attributes.smudged: ValueError: ink everywhere" in there.row(stack_id, "reader").reason
    assert there.row(stack_id, "letter").status == "COMPLETE"
    OFFICE.broken = None
    there.live(60)
    there.stack_service.update(
        stack_id, StackRequest(there_template({"desk": DESK, "letter": LETTER, "reader": reader}))
    )
    there.work()
    there.rest()
    assert there.state(stack_id) == "UPDATE_COMPLETE"
    assert there.row(stack_id, "reader").properties["value"] == "hall/desk"


def test_an_attribute_of_a_member_that_cannot_be_read_is_an_error_of_who_reads_it() -> None:
    OFFICE.broken = ValueError("ink everywhere")
    there = service()
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": LETTER}}
    places = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["letters", "place"]}}}
    stack_id = create(
        there, {"desk": DESK, "letters": group, "places": places}, smudged={"get_attr": ["letters", "smudged"]}
    )
    there.rest()
    assert there.state(stack_id) == "CREATE_COMPLETE"
    assert there.row(stack_id, "places").properties["value"] == ["floor", "floor"]
    assert outputs_of(there, stack_id) == {"smudged": "resources.0.attributes.smudged: ValueError: ink everywhere"}


def there_template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "wallaby", "resources": resources}


def test_an_attribute_that_breaks_later_keeps_its_value_and_makes_one_event() -> None:
    there = service()
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["letter", "smudged"]}}}
    stack_id = create(
        there, {"desk": DESK, "letter": LETTER, "reader": reader}, smudged={"get_attr": ["letter", "smudged"]}
    )
    there.rest()
    OFFICE.broken = ValueError("ink everywhere")
    there.live(120)
    assert outputs_of(there, stack_id) == {"smudged": "hall/desk"}
    assert there.state(stack_id) == "CREATE_COMPLETE"
    with there.db.read() as tx:
        found = tx.execute(select(schema.event).where(schema.event.c.reason.contains("ink"))).all()
    assert [(each.name, each.reason) for each in found] == [
        ("letter", "attributes.smudged cannot be read: ValueError: ink everywhere")
    ]


@pytest.mark.parametrize(
    ("base", "needs"),
    [
        (stack_types.StackUser, "users of Keystone"),
        (stack_types.SignalResponder, "`handle_signal` needs no such class"),
        (stack_types.StackResource, "a stack of its own"),
    ],
)
def test_what_a_base_class_would_need_is_named(base: type[resource.Resource], needs: str) -> None:
    with pytest.raises(TypeError, match=needs):
        plugin_type("Example::Mine", type("Mine", (base,), {}))


def test_what_there_is_no_login_for_is_named() -> None:
    for ask in (lambda: OfficeClient(None).url_for(service_type="mail"), lambda: resource.Context().keystone_session):
        with pytest.raises(exception.NotSupported, match="is not supported"):
            ask()


class Wire(neutron.NeutronResource):
    """One of Neutron's things."""

    default_client_name = "office"
    entity = "wire"
    properties_schema = {
        "name": properties.Schema(properties.Schema.STRING, update_allowed=True),
        "length": properties.Schema(properties.Schema.INTEGER),
        "value_specs": properties.Schema(properties.Schema.MAP, default={}, update_allowed=True),
    }


def test_a_thing_of_neutron() -> None:
    prepare = Wire.prepare_properties
    given = {"name": None, "length": 3, "value_specs": {"colour": "red"}}
    assert prepare(given, "web-wire-1") == {"name": "web-wire-1", "length": 3, "colour": "red"}
    assert "length not allowed in value_specs" in str(
        Wire.validate_properties({"length": 1, "value_specs": {"length": 2}})
    )
    assert Wire.validate_properties(given) is None
    one = Wire("w", resource.ResourceDefinition("w", "Example::Wire", properties=given), resource.Stack())
    diff: dict[str, Any] = {"name": None, "value_specs": {"colour": "red", "end": "b"}}
    one.prepare_update_properties(diff)
    assert diff == {"name": "w", "end": "b"}
    assert [Wire.is_built({"status": each}) for each in ("BUILD", "ACTIVE", "DOWN")] == [False, True, True]
    for status, error in (("ERROR", exception.ResourceInError), ("?", exception.ResourceUnknownStatus)):
        with pytest.raises(error):
            Wire.is_built({"status": status})


def test_a_task_is_run_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    def count(most: int) -> Iterator[None]:
        for each in range(most):
            steps.append(each)
            yield

    @scheduler.wrappertask
    def twice() -> Iterator[Any]:
        yield count(1)
        yield
        yield count(2)

    one = scheduler.TaskRunner(count, 2)
    assert (one.started(), one.done(), bool(one)) == (False, False, True)
    one.start()
    assert [one.step(), one.step(), one.step()] == [False, True, True]
    assert steps == [0, 1]
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    scheduler.TaskRunner(twice)()
    assert steps == [0, 1, 0, 0, 1]
    scheduler.TaskRunner(lambda: 7)()
    late = scheduler.TaskRunner(count, 9)
    with pytest.raises(scheduler.Timeout):
        late.start(timeout=-1)
    assert late.done()
    cancelled = scheduler.TaskRunner(count, 9)
    cancelled.start()
    cancelled.cancel()
    assert cancelled.done()
    with pytest.raises(ValueError, match="was started before"):
        cancelled.start()
