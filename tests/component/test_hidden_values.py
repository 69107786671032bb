"""Values of hidden parameters, in what the service tells of what happens: reasons, events, sinks, logs, spans."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import select

from homeostat.api.orchestration.revision_text import environment_of, shown_template
from homeostat.api.orchestration.views import stack_parameters
from homeostat.clouds.port import Creation as Wanted
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.observability import tracing
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.templates import HIDDEN
from tests.component.running import PROJECT, Service, group, server, volume
from tests.component.test_sinks import LISTENING, Listener

CANARY = "canary'5b\n2e"
"""It is quoted in several ways."""
FORMS = (CANARY, repr(CANARY)[1:-1], json.dumps(CANARY)[1:-1], "canary")
VERSION = "2018-08-31"
DECLARED = {"pw": {"type": "string", "hidden": True}}
PW = {"get_param": "pw"}
INNER = f"""
heat_template_version: {VERSION}
parameters: {{plain: {{type: string}}, other: {{type: string, default: shown}}}}
resources:
  v: {{type: OS::Cinder::Volume, properties: {{size: 1, description: {{get_param: plain}}}}}}
"""


class Loud(SimulatedCloud):
    """A cloud that quotes what it was given, whatever it says. fault — what it says; None: it does what it is told."""

    fault: type[Exception] | None = Terminal

    def create(self, kind: str, intents: Sequence[Wanted]) -> list[Any]:
        if self.fault is None:
            return super().create(kind, intents)
        if self.fault is ValueError:
            raise ValueError(f"no such thing: {[dict(each.spec) for each in intents]!r}")
        return [
            self.fault(f"no {_quoted(each.spec)}; {json.dumps(dict(each.spec))}; {dict(each.spec)!r}")
            for each in intents
        ]


def _quoted(spec: Mapping[str, Any]) -> Any:
    return spec.get("description") or spec.get("metadata", {}).get("word")


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def service(listener: Listener) -> Service:
    return Service(cloud=lambda clock: Loud(clock.now), installed=[listener])


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    yield exporter
    tracing.use(None)


def loud(service: Service) -> Loud:
    assert isinstance(service.cloud, Loud)
    return service.cloud


def intent(resources: Mapping[str, Any], **more: Any) -> StackRequest:
    whole = {"heat_template_version": VERSION, "parameters": DECLARED, "resources": resources}
    return StackRequest(whole, {"pw": CANARY}, more.pop("environment", LISTENING), more.pop("files", {}), True, **more)


def reasons(service: Service) -> list[str]:
    """All that are stored."""
    tables = (schema.resource, schema.stack, schema.event, schema.shard, schema.resource_observed, schema.event_sink)
    with service.db.read() as tx:
        return [reason for table in tables for reason in tx.execute(select(table.c.reason)).scalars() if reason]


def showing(texts: Any) -> list[str]:
    return [text for text in map(str, texts) if any(form in text for form in FORMS)]


INSIDE = {"type": "inner.yaml", "properties": {"plain": PW}}
ROADS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a resource": ({"v": volume(description=PW)}, {}),
    "a part of a property": ({"v": volume(description={"list_join": ["-", ["x", PW]]})}, {}),
    "a nested stack": ({"inner": INSIDE}, {"inner.yaml": INNER}),
    "one in a nested stack": (
        {"outer": {"type": "outer.yaml", "properties": {"plain": PW}}},
        {
            "inner.yaml": INNER,
            "outer.yaml": INNER.replace("OS::Cinder::Volume", "inner.yaml").replace("size: 1, description:", "plain:"),
        },
    ),
    "a member of a group": ({"g": group(2, server(metadata={"word": PW}))}, {}),
    "a nested stack in a group": ({"g": group(2, INSIDE)}, {"inner.yaml": INNER}),
}


@pytest.mark.heavy
@pytest.mark.parametrize("fault", [Terminal, Transient, ValueError])
@pytest.mark.parametrize("road", ROADS)
def test_what_a_cloud_quotes_is_hidden(
    service: Service,
    listener: Listener,
    spans: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
    road: str,
    fault: type[Exception],
) -> None:
    caplog.set_level(logging.DEBUG)
    loud(service).fault = fault
    resources, files = ROADS[road]
    stack_id = service.stack_service.create(PROJECT, None, "web", intent(resources, files=files))
    service.live(30.0)
    reported = reasons(service)
    assert showing(reported) == []
    assert fault is ValueError or any(HIDDEN in each for each in reported), "it was quoted"
    assert listener.bodies
    assert showing(listener.bodies) == []
    assert showing([caplog.text]) == []
    assert showing(each.to_json() for each in spans.get_finished_spans()) == []
    service.stack_service.delete(stack_id)
    service.live(30.0)
    assert showing(reasons(service)) == []


@pytest.mark.parametrize("known", [True, False], ids=["what is hidden is known", "it cannot be read either"])
def test_an_error_of_loading_is_hidden(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, known: bool
) -> None:
    def bug(*_: Any) -> Any:
        raise LookupError(f"a bug with {CANARY}")

    loud(service).fault = None
    service.stack_service.create(PROJECT, None, "web", intent({"v": volume(description=PW)}))
    monkeypatch.setattr(service.reconciler.definitions, "get", bug)
    if not known:
        monkeypatch.setattr(service.reconciler.redactions, "over", bug)
    service.work()
    reported = reasons(service)
    assert showing(reported) == showing([caplog.text]) == []
    shown = f"LookupError: a bug with {HIDDEN}" if known else "LookupError"
    assert f"RuntimeError({shown!r})" in reported


def test_what_was_hidden_before_an_update_still_is(service: Service) -> None:
    stack_id = service.stack_service.create(PROJECT, None, "web", intent({"v": volume(description=PW)}))
    service.live(30.0)
    assert service.state(stack_id) == "CREATE_FAILED"
    service.stack_service.update(
        stack_id, StackRequest({"heat_template_version": VERSION, "resources": {"w": volume(name="w")}})
    )
    service.live(30.0)
    assert showing(reasons(service)) == []


def test_a_sink_gets_the_properties_without_what_is_hidden(service: Service, listener: Listener) -> None:
    loud(service).fault = None
    resources = {"inner": INSIDE, "w": volume(description=PW, availability_zone="shown")}
    service.stack_service.create(PROJECT, None, "web", intent(resources, files={"inner.yaml": INNER}))
    service.live(30.0)
    reported = {body["payload"]["resource_name"]: body["payload"]["resource_properties"] for body in listener.bodies}
    assert reported["w"]["description"] == reported["v"]["description"] == reported["inner"]["plain"] == HIDDEN
    assert reported["w"]["availability_zone"] == "shown"
    assert showing(listener.bodies) == []


def test_a_nested_stack_hides_what_it_is_given(service: Service) -> None:
    loud(service).fault = None
    derived = {"type": "inner.yaml", "properties": {"plain": {"digest": ["sha256", PW]}}}
    for made in (INSIDE, derived):
        service.stack_service.create(
            PROJECT, None, f"web{id(made)}", intent({"inner": made}, files={"inner.yaml": INNER})
        )
    service.live(30.0)
    children = [each for each in service.stacks() if each.parent_id is not None]
    assert len(children) == 2
    with service.db.read() as tx:
        graphs = [Graphs().described(tx, child) for child in children]
    for child, graph in zip(children, graphs, strict=True):
        shown = stack_parameters(child, graph)
        assert (shown["plain"], shown["other"]) == (HIDDEN, "shown")
        assert environment_of(graph)["parameters"]["plain"] == HIDDEN
        assert graph.content.parameters["plain"] not in json.dumps(environment_of(graph))


def test_the_template_of_a_group_is_shown_without_what_is_hidden(service: Service) -> None:
    loud(service).fault = None
    service.stack_service.create(PROJECT, None, "web", intent({"g": group(2, server(metadata={"word": PW}))}))
    service.live(30.0)
    with service.db.read() as tx:
        shown = shown_template(Graphs().described(tx, service.child()))
    assert shown["resources"]["1"]["properties"]["metadata"] == {"word": HIDDEN}
    assert shown["resources"]["1"]["properties"]["image"] == "i"


# -- refusals ----------------------------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Any]] = {
    "by a type": {"v": {"type": "OS::Cinder::Volume", "properties": {"size": PW}}},
    "by a rule": {"s": server(name="n", user_data_format=PW)},
    "by a function": {"v": volume(name={"list_join": ["-", PW]})},
    "as a name": {"v": volume(), "w": volume(name={"get_attr": [PW, "name"]})},
    "inside a nested stack": {"inner": {"type": "inner.yaml", "properties": {"plain": "x", "other": PW}}},
    "inside a group": {"g": group(2, {"type": "OS::Cinder::Volume", "properties": {"size": PW}})},
}


@pytest.mark.parametrize("road", REFUSED)
def test_a_refusal_does_not_quote_what_is_hidden(service: Service, road: str) -> None:
    picky = INNER.replace("default: shown}", "default: shown, constraints: [{allowed_values: [shown]}]}")
    wrong = intent(REFUSED[road], environment={}, files={"inner.yaml": picky})
    with pytest.raises(Rejected) as caught:
        service.stack_service.create(PROJECT, None, "web", wrong)
    assert showing([caught.value, caught.value.detail, caught.value.path]) == []
    assert caught.value.__cause__ is None or showing([caught.value.__cause__]) == []
