"""Kinds of event sinks, to which the events of a stack are posted.

Packages add kinds in the entry point group `homeostat.event_sinks`: classes like `SinkKind`, with a `name`, that can be
instantiated without arguments.
"""

import hashlib
import hmac
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson

from homeostat.clouds.outbound import Outbound
from homeostat.clouds.port import Clouds, Operation
from homeostat.desired.redaction import Redaction
from homeostat.model.errors import HomeostatError, Rejected, Transient
from homeostat.model.status import Action
from homeostat.resources.discovery import PluginProblem, loaded
from homeostat.resources.nested import public_properties
from homeostat.resources.registry import shown_id
from homeostat.store.builtin.event_sinks import UndeliveredEvent
from homeostat.store.events import event_id
from homeostat.templates.parameters import HIDDEN

LOG = logging.getLogger(__name__)
GROUP = "homeostat.event_sinks"
"""Entry point group of further kinds."""
SINKS_MAX = 10
"""Sinks per stack."""
TTL_S = 3600
"""Default lifetime of a message in a queue, in seconds."""
TTL_MIN_S = 60
POST_S = 5.0
"""Timeout of a web hook."""
SIGNATURE = "X-Homeostat-Signature"
"""Header with `sha256=` and the HMAC of the body, under the sink's secret."""
Settings = Mapping[str, Any]


class SinkKind(Protocol):
    """A kind of event sink. Its methods are called by several threads.

    The settings of a sink are its entry in the environment. They include the `type`; the value of `secret` is redacted
    in all output.
    """

    name: str

    def check(self, project: str, settings: Settings) -> None:
        """Check the settings of a sink.

        Raises:
            ValueError: Settings are wrong.
            Rejected: The sink cannot be used here.
        """

    def post(self, project: str, settings: Settings, body: Mapping[str, Any]) -> None:
        """Deliver an event. After any exception, the same event is delivered again later."""


class QueueSink:
    """Sink that posts to a queue of the project's message service."""

    name = "zaqar-queue"

    def __init__(self, clouds: Clouds | None) -> None:
        self._clouds = clouds

    def check(self, project: str, settings: Settings) -> None:
        _only(settings, "target", "ttl")
        _text(settings, "target")
        ttl = settings.get("ttl", TTL_S)
        if not isinstance(ttl, int) or isinstance(ttl, bool) or ttl < TTL_MIN_S:
            raise ValueError(f"ttl: a number of seconds, {TTL_MIN_S} at least, is needed")
        if self._clouds is not None and "queue" not in self._clouds(project).kinds:
            message = (
                f"the cloud {self._clouds(project).name} has no queues: use a sink of type {WebHook.name}, or none"
            )
            raise Rejected("ResourceTypeUnavailable", message)

    def post(self, project: str, settings: Settings, body: Mapping[str, Any]) -> None:
        """Post an event. A missing queue is created, except for events about deletions.

        Raises:
            HomeostatError: The cloud cannot be reached, or refuses the message.
        """
        if self._clouds is None:
            raise Transient("there is no cloud with queues")
        message = {"body": body, "ttl": settings.get("ttl", TTL_S)}
        # The queue may be a resource of the stack: do not bring a deleted queue back.
        make = body.get("payload", {}).get("resource_action") != Action.DELETE
        operation = Operation(settings["target"], "post", {"messages": [message], "make": make})
        (answer,) = self._clouds(project).operate("queue", [operation])
        if isinstance(answer, HomeostatError):
            raise answer
        if not answer.present:
            raise Transient(f"there is no queue {settings['target']}")


class WebHook:
    """Sink that posts to a URL; with a secret, a header authenticates the service."""

    name = "webhook"

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def check(self, project: str, settings: Settings) -> None:
        _only(settings, "url", "secret")
        url = _text(settings, "url")
        try:
            self._outbound.check(url)
        except ValueError as error:
            raise ValueError(f"url: {error}") from error
        if "secret" in settings and _text(settings, "secret") == HIDDEN:
            raise ValueError("secret: this is the placeholder that is shown for the secret; enter the secret itself")

    def post(self, project: str, settings: Settings, body: Mapping[str, Any]) -> None:
        """Post an event.

        Raises:
            Transient: The URL cannot be reached, or does not accept the event.
        """
        content = orjson.dumps(body)
        headers = {"Content-Type": "application/json"}
        if settings.get("secret"):
            digest = hmac.new(settings["secret"].encode(), content, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        self._outbound.post(settings["url"], content, headers, POST_S)


class Sinks:
    """All kinds of sinks, by name. Safe to share between threads."""

    def __init__(
        self, clouds: Clouds | None = None, outbound: Outbound = Outbound(), installed: Sequence[SinkKind] = ()
    ) -> None:
        """Collect the kinds.

        Args:
            clouds: The cloud per project. If None, queues in settings are not checked, and posting to a queue fails.
            outbound: HTTP client for users' URLs.
            installed: Further kinds, see `installed_sinks`.
        """
        # The built-in kinds come last, so that no package can replace them.
        own: list[SinkKind] = [QueueSink(clouds), WebHook(outbound)]
        self._kinds = {kind.name: kind for kind in [*installed, *own]}

    def check(self, project: str, sinks: Sequence[Any]) -> None:
        """Check the section `event_sinks` of an environment.

        Raises:
            Rejected: A sink is wrong, or there are too many; the error names the place.
        """
        if len(sinks) > SINKS_MAX:
            message = f"a stack has at most {SINKS_MAX} event sinks"
            raise Rejected("HTTPBadRequest", message, path=("environment", "event_sinks"))
        for place, settings in enumerate(sinks):
            try:
                self._check_one(project, settings)
            except ValueError as error:
                raise Rejected("HTTPBadRequest", str(error), path=("environment", "event_sinks", place)) from error
            except Rejected as error:
                raise error.at("environment", "event_sinks", place) from error

    def _check_one(self, project: str, settings: Any) -> None:
        """Check a single sink.

        Raises:
            ValueError, Rejected: The sink is wrong, or cannot be used here.
        """
        name = settings.get("type") if isinstance(settings, Mapping) else None
        if not isinstance(name, str):
            raise ValueError("a map with a type is needed")
        if name not in self._kinds:
            raise ValueError(f"there is no event sink of type {name!r}; there are: {', '.join(sorted(self._kinds))}")
        self._kinds[name].check(project, settings)

    def post(self, project: str, settings: Settings, body: Mapping[str, Any]) -> None:
        """Deliver an event.

        Raises:
            Transient: The kind is not installed (any more).
            Exception: Any error of the kind.
        """
        kind = self._kinds.get(settings["type"])
        if kind is None:
            raise Transient(f"no package here has event sinks of type {settings['type']}")
        kind.post(project, settings, body)


def body_of(event: UndeliveredEvent, redaction: Redaction) -> dict[str, Any]:
    """Return the body of an event for a sink, in Heat's format."""
    return {
        "timestamp": datetime.fromtimestamp(int(event.at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": "0.1",
        "type": "os.heat.event",
        "id": event_id(event.stack_id, event.seq),
        "payload": {
            "resource_name": event.name,
            "physical_resource_id": shown_id(event.type, event.handle or "") or None,
            "stack_id": event.stack_id,
            "resource_action": event.action,
            "resource_status": event.status,
            "resource_status_reason": event.reason,
            "requested_by": event.requested_by or None,
            "request_id": event.request_id or None,
            "resource_type": event.type,
            "resource_properties": {
                name: redaction.shown(event.name, name, value)
                for name, value in public_properties(event.properties or {}).items()
            },
            "version": "0.1",
        },
    }


@dataclass(frozen=True, slots=True)
class InstalledSinks:
    """Kinds of sinks in installed packages; `problems` names the kinds left out."""

    kinds: Sequence[SinkKind]
    problems: Sequence[PluginProblem]


def installed_sinks() -> InstalledSinks:
    """Return the kinds of sinks in installed packages."""
    packages = loaded(GROUP)
    kinds: dict[str, SinkKind] = {}
    problems = list(packages.problems)
    for origin, kind_class in packages.things:
        try:
            kind = _made(kind_class)
        except Exception as error:
            LOG.exception("the event sink of %s cannot be made", origin)
            problems.append(PluginProblem(origin, f"{kind_class!r} is no kind of event sink: {error}"))
            continue
        if kind.name in (QueueSink.name, WebHook.name, *kinds):
            problems.append(PluginProblem(origin, f"the name {kind.name} is taken"))
        else:
            kinds[kind.name] = kind
    return InstalledSinks(list(kinds.values()), problems)


def _made(kind_class: Any) -> SinkKind:
    """Instantiate a kind of sink.

    Raises:
        TypeError: A part of the protocol is missing.
        Exception: Any error of the constructor.
    """
    kind = kind_class()
    if not (isinstance(kind.name, str) and callable(kind.check) and callable(kind.post)):
        raise TypeError("a name, check and post are needed")
    sink_kind: SinkKind = kind
    return sink_kind


def _only(settings: Settings, *known: str) -> None:
    """Raise ValueError for unknown keys in settings."""
    others = sorted(str(key) for key in settings.keys() - {"type", *known})
    if others:
        raise ValueError(f"there is no setting {others[0]!r}; there are: {', '.join(known)}")


def _text(settings: Settings, name: str) -> str:
    """Return a setting. Raise ValueError unless it is a text, and not empty."""
    value = settings.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}: a text is needed")
    return value
