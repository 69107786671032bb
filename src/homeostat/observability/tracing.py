"""Traces of the service's work, as OpenTelemetry spans.

Without a call of `start`, traces are off and cost next to nothing. `start` needs the packages of `homeostat[otel]`. The
usual `OTEL_*` variables set the receiver and the sampling of spans.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from homeostat.clouds.port import Answer
from homeostat.model.errors import HomeostatError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
NAME, NAMELESS = "service.name", "unknown_service"
"""The attribute with the service's name, and the prefix of its value without `OTEL_*` variables."""

_OFF: AbstractContextManager[None] = nullcontext()

_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None


def available() -> bool:
    """Return whether the packages are installed."""
    try:
        return all(find_spec(name) is not None for name in NEEDED)
    except ModuleNotFoundError:
        return False


def start(process: str) -> None:
    """Send spans to an OTLP receiver over HTTP from now on; `process` (`api`, `worker`) ends the service's name."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes.get(NAME, "")).startswith(NAMELESS):
        resource = resource.merge(Resource({NAME: f"homeostat-{process}"}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider)


def use(provider: "TracerProvider | None") -> None:
    """Create spans with this provider from now on; None switches them off."""
    global _provider, _tracer
    _provider = provider
    _tracer = None if provider is None else provider.get_tracer("homeostat")


def stop() -> None:
    """Switch traces off, and send the pending spans."""
    provider = _provider
    use(None)
    if provider is not None:
        provider.shutdown()


def on() -> bool:
    return _tracer is not None


def span(name: str, under: "Context | None" = None, **attributes: Any) -> AbstractContextManager[Any]:
    """Create a span around the block, which records an exception raised by the block.

    Args:
        under: Context of the parent; None for the current context.
        attributes: As in `note`.
    """
    if _tracer is None:
        return _OFF
    return _tracer.start_as_current_span(name, context=under, attributes=_named(attributes))


def request(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[Any]:
    """Create a span around a request to the API, which continues the trace in its headers (W3C trace context)."""
    if _tracer is None:
        return _OFF
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    parent = extract({name.decode("latin-1"): value.decode("latin-1") for name, value in headers})
    attributes = {"http.request.method": method, "url.path": path}
    return _tracer.start_as_current_span(method, context=parent, kind=SpanKind.SERVER, attributes=attributes)


def responded(method: str, code: int, route: str, **attributes: Any) -> None:
    """Record the response to a request in its span.

    Args:
        method: HTTP method.
        code: Status code.
        route: Route of the application, with names for the variable parts; "" for none.
        attributes: As in `note`.
    """
    if _tracer is None:
        return
    from opentelemetry.trace import StatusCode, get_current_span

    span = get_current_span()
    span.set_attributes({"http.response.status_code": code, **_named(attributes)})
    if route:
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)
    if code >= 500:
        span.set_status(StatusCode.ERROR)


def note(**attributes: Any) -> None:
    """Add attributes to the current span; `stack_id` becomes `homeostat.stack.id`."""
    if _tracer is None:
        return
    from opentelemetry.trace import get_current_span

    get_current_span().set_attributes(_named(attributes))


def here() -> "Context | None":
    """Return the current context, for spans in another thread."""
    if _tracer is None:
        return None
    from opentelemetry.context import get_current

    return get_current()


def answered(answers: Sequence[Answer]) -> None:
    """Record the number of failed items of a batch in the current span, and the first error."""
    if _tracer is None:
        return
    errors = [answer for answer in answers if isinstance(answer, HomeostatError)]
    if errors:
        note(errors=len(errors), error=f"{type(errors[0]).__name__}: {errors[0]}")


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    return {f"homeostat.{key.replace('_', '.')}": value for key, value in attributes.items()}
