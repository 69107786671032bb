"""What the service does, as spans: what belongs to which, and what they tell."""

import gzip
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from homeostat.api.access.auth import NoAccess
from homeostat.api.app import create_app
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.observability import tracing
from tests.component.running import Service, server, template, volume

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Spans = Callable[[], dict[str, list[ReadableSpan]]]


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Traces are on; gives the spans that ended so far, by name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)

    def ended() -> dict[str, list[ReadableSpan]]:
        found: dict[str, list[ReadableSpan]] = {}
        for each in exporter.get_finished_spans():
            found.setdefault(each.name, []).append(each)
        return found

    yield ended
    tracing.stop()


def attribute(span: ReadableSpan, name: str) -> object:
    return (span.attributes or {}).get(f"homeostat.{name}")


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and span.parent.span_id == parent.context.span_id


def test_a_span_says_what_a_pass_was_about_and_how_it_ended(spans: Spans) -> None:
    service = Service()
    stack_id = service.create({"a": server()})
    last = spans()["pass"][-1]
    assert attribute(last, "stack.id") == stack_id
    assert [attribute(last, name) for name in ("shard", "revision", "stack", "outcome")] == [0, 1, "web", "done"]
    assert isinstance(attribute(last, "epoch"), int)


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)], ids=["one thread", "side by side"])
def test_batches_and_calls_belong_to_their_pass(spans: Spans, executor: ThreadPoolExecutor | None) -> None:
    Service(pool=executor).create({"a": server(), "b": server(), "c": volume()})
    (passed, *_) = [each for each in spans()["pass"] if any(is_child(one, each) for one in spans()["perform"])]
    batches = [each for each in spans()["perform"] if is_child(each, passed)]
    assert {(attribute(each, "verb"), attribute(each, "kind"), attribute(each, "count")) for each in batches} == {
        ("create", "server", 2),
        ("create", "volume", 1),
    }
    for batch in batches:
        (call,) = [each for each in spans()["call"] if is_child(each, batch)]
        assert attribute(call, "kind") == attribute(batch, "kind")


def test_a_refusal_of_a_cloud_is_in_its_span(spans: Spans) -> None:
    Service(CloudBehaviour(faults=Faults(refused=1.0))).create({"a": server()})
    batch = spans()["perform"][0]
    assert (attribute(batch, "errors"), attribute(batch, "error")) == (1, "Transient: the cloud is busy")


def test_a_call_that_fails_is_an_error(spans: Spans) -> None:
    Service(CloudBehaviour(faults=Faults(unreachable=1.0))).create({"a": server()})
    call = spans()["call"][0]
    assert not call.status.is_ok
    assert call.events[0].name == "exception"


def test_a_round_of_looking_has_a_span_only_if_it_looks(spans: Spans) -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    service.observer.round()
    assert "round" not in spans()
    service.create({"a": server()})
    service.live(2.0)
    first = spans()["round"][0]
    assert attribute(first, "shards") == 1
    assert any(is_child(each, first) and attribute(each, "verb") == "observe" for each in spans()["call"])


def test_a_request_goes_on_with_the_trace_of_its_caller_and_names_the_stack(spans: Spans) -> None:
    service = Service()
    app = create_app(service.db, service.stack_service, service.clock, access=NoAccess())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        body = {"stack_name": "web", "template": template({"a": server()})}
        answer = client.post("/v1/p/stacks", json=body, headers={"traceparent": CALLER})
        assert answer.status_code == 201
        assert client.get("/v1/p/stacks/none/00000000-0000-4000-8000-000000000000").status_code == 404
    stack_id = answer.json()["stack"]["id"]
    created, missing = (each for found in spans().values() for each in found if each.name.startswith(("POST", "GET")))
    assert f"{created.context.trace_id:032x}" == CALLER.split("-")[1]
    assert attribute(created, "stack.id") == stack_id
    assert attribute(missing, "stack.id") == "00000000-0000-4000-8000-000000000000"
    assert str(attribute(created, "request.id")).startswith("req-")
    assert [(each.attributes or {})["http.response.status_code"] for each in (created, missing)] == [201, 404]
    assert "stacks" in created.name


def test_switched_off_nothing_is_made() -> None:
    assert not tracing.on()
    assert tracing.span("pass", stack_id="s") is tracing.span("call")
    assert tracing.here() is None
    tracing.note(stack_id="s")
    tracing.answered([])


# -- a real receiver ---------------------------------------------------------------------------------------------------


class Receiver:
    """Takes what is sent over OTLP on a port of this machine."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        taken = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                taken.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    thread = threading.Thread(target=one.server.serve_forever)
    thread.start()
    yield one
    one.server.shutdown()
    thread.join()
    one.server.server_close()


@pytest.mark.parametrize("name", ["", "mine"])
def test_spans_arrive_at_an_otlp_receiver(receiver: Receiver, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    if name:
        monkeypatch.setenv("OTEL_SERVICE_NAME", name)
    tracing.start("worker")
    try:
        stack_id = Service().create({"a": server()})
    finally:
        tracing.stop()
    resource = receiver.requests[0].resource_spans[0]
    service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
    assert service == (name or "homeostat-worker")
    groups = [group for each in receiver.requests for group in each.resource_spans]
    sent = [span for group in groups for scope in group.scope_spans for span in scope.spans]
    passes = [span for span in sent if span.name == "pass"]
    assert passes
    attribute = {each.key: each.value.string_value for each in passes[0].attributes}
    assert attribute["homeostat.stack.id"] == stack_id
