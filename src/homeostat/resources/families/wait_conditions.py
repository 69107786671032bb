"""Types that wait for signals from outside: wait conditions, and the handles that receive the signals.

The service itself stores the signals (`builtin.kinds`); `resources.signals` interprets them.
"""

import json
from typing import Any

from homeostat.model.errors import invalid
from homeostat.model.observed import READY, Condition, Remedy, Verdict
from homeostat.resources import signals, signing
from homeostat.resources.base import Props, ResourceType, Thing, settling
from homeostat.resources.graph import Graph, mentioned
from homeostat.resources.schema import Attribute, between, integer, number, one_of, text
from homeostat.resources.signals import Transport

HANDLE = "signal_handle"
CONDITION = "wait_condition"
TIMEOUT_MAX_S = 43_200


def handle_id(reference: str) -> str:
    """Return the id of the record of a handle with this reference."""
    return signing.id_of(signing.access_key_of(reference)) or reference


class Handle(ResourceType):
    """Base of the types of handles.

    Attributes:
        form: Form of the bodies of their signals, see `resources.signals`.
    """

    secretive = True
    kind = HANDLE
    form = "native"

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"name": physical_name, "form": self.form, "transport": Transport.TEMP_URL}

    def show(self, thing: Thing) -> Any:
        """Return everything but the credentials, which have separate attributes."""
        return {name: thing.seen.properties[name] for name in ("id", "transport") if name in thing.seen.properties}


class WaitConditionHandle(Handle):
    name = "OS::Heat::WaitConditionHandle"
    description = "Takes signals for a wait condition."
    properties = {
        "signal_transport": text(
            "How a server signals: with a token, or at a signed address.",
            default=Transport.TOKEN,
            constraints=(one_of(*Transport),),
        )
    }
    unsent = {"signal_transport"}
    attributes = {
        "token": Attribute("Token that may signal this handle and nothing else.", live=True, secret=True),
        "endpoint": Attribute("Address to which signals are posted with the token.", live=True),
        "curl_cli": Attribute("Command line that signals; a body is added with --data-binary.", live=True, secret=True),
        "signal": Attribute("JSON of what a server needs to signal, where no token is used.", live=True, secret=True),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {**super().spec(values, physical_name), "transport": values["signal_transport"]}

    def attribute(self, thing: Thing, name: str) -> Any:
        seen = thing.seen.properties
        transport = seen.get("transport")
        if name == "signal" and transport is not None:
            if transport == Transport.NONE:
                return "{}"
            if transport in (Transport.HEAT, Transport.ZAQAR):
                return json.dumps(seen.get("login"))
            return json.dumps({"alarm_url": seen.get("url")}) if transport != Transport.TOKEN else None
        if transport != Transport.TOKEN:
            return None
        return curl(seen, "POST", seen.get("token")) if name == "curl_cli" else seen.get(name)


def curl(seen: Props, verb: str, token: str | None) -> str:
    """Return the command line that sends a signal, with a token or to the signed URL."""
    headers = [f"X-Auth-Token: {token}"] if token else []
    headers += ["Content-Type: application/json", "Accept: application/json"]
    address = seen.get("endpoint") if token else seen.get("url")
    return " ".join([f"curl -i -X {verb}", *(f"-H '{header}'" for header in headers), f"'{address}'"])


class AwsWaitConditionHandle(Handle):
    secret_reference = True
    name = "AWS::CloudFormation::WaitConditionHandle"
    description = "Takes signals for a wait condition at a signed address, which is its reference."
    form = "aws"

    def reference(self, thing: Thing) -> Any:
        """Its signed address."""
        return thing.seen.properties.get("url") or thing.name


class UpdateWaitConditionHandle(AwsWaitConditionHandle):
    name = "OS::Heat::UpdateWaitConditionHandle"
    description = "A handle that is made anew at each update, so that the condition waits again."
    renewed = True


class SwiftSignalHandle(Handle):
    secret_reference = True
    name = "OS::Heat::SwiftSignalHandle"
    description = "Takes signals for a SwiftSignal at a signed address, which is its reference."
    attributes = {
        "token": Attribute("Empty: the address alone is enough.", live=True),
        "endpoint": Attribute("Signed address to which signals are put.", live=True, secret=True),
        "curl_cli": Attribute("Command line that signals; a body is added with --data-binary.", live=True, secret=True),
    }

    def reference(self, thing: Thing) -> Any:
        """Its signed address."""
        return thing.seen.properties.get("url") or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        if name == "token":
            return ""
        return curl(thing.seen.properties, "PUT", None) if name == "curl_cli" else thing.seen.properties.get("url")


class WaitCondition(ResourceType):
    """A wait condition.

    Attributes:
        words: Names of its properties for the handle, the timeout and the count.
        data: Name of its attribute.
    """

    name = "OS::Heat::WaitCondition"
    kind = CONDITION
    description = "Is complete when its handle was signalled often enough."
    words = ("handle", "timeout", "count")
    data = "data"
    properties = {
        "handle": text("The handle that takes the signals.", required=True),
        "timeout": number("Seconds to wait.", required=True, constraints=(between(1, TIMEOUT_MAX_S),)),
        "count": integer("Signals of success to wait for.", default=1, update=True, constraints=(between(1),)),
    }
    attributes = {"data": Attribute("JSON of what each signal has brought, by its id.", live=True)}

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        """Check that the handle, if defined in this template, is a type of handle or a template."""
        named = mentioned(properties.get(self.words[0]))
        for name in sorted(named & graph.keys()):
            if "Handle" not in graph[name][0] and not graph[name][0].endswith((".yaml", ".template")):
                message = f"{name} is no handle but {graph[name][0]}; give the reference of a handle"
                raise invalid(message, *path, self.words[0], error="Property error")

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        handle, timeout, count = (values[word] for word in self.words)
        return {"name": physical_name, "handle": handle, "timeout": timeout, "count": count}

    def fitness(self, thing: Thing, now: float) -> Verdict:
        """Judge by the signals before the timeout, no matter how late the judgement is made."""
        leaving = settling(thing, self.statuses)
        if leaving is not None:
            return leaving
        # Met before it was adopted from another service: no server will signal again.
        if thing.seen.properties.get("met"):
            return READY
        _, timeout_s, count = (thing.properties[word] for word in self.words)
        due_at = thing.acted_at + timeout_s
        reached = signals.count_heard(_heard(thing.seen.properties, count), count, due_at)
        if reached.failures:
            return Verdict(Condition.BROKEN, ";".join(reached.failures), Remedy.MANUAL)
        if reached.count >= count:
            return READY
        came = f"{reached.count} of {count} received"
        if now < due_at:
            return Verdict(Condition.PENDING, f"it waits for signals: {came}", due_at=due_at)
        reasons = f" - {';'.join(reached.reasons)}" if reached.reasons else ""
        return Verdict(Condition.BROKEN, f"WaitConditionTimeout: {came}{reasons}", Remedy.MANUAL)

    def drift(self, thing: Thing) -> tuple[str, ...]:
        return ()

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != self.data:
            return super().attribute(thing, name)
        return signals.data_of(thing.seen.properties.get("signals") or [])


def _heard(seen: Props, count: int) -> Props:
    """Return the stored report on signals; a process of an older version may have stored the signals themselves."""
    heard = seen.get("heard")
    return heard if isinstance(heard, dict) else signals.tallied(seen.get("signals") or [], count)


class SwiftSignal(WaitCondition):
    name = "OS::Heat::SwiftSignal"
    properties = {
        "handle": text("The handle that takes the signals.", required=True),
        "timeout": number("Seconds to wait.", required=True, constraints=(between(1, TIMEOUT_MAX_S),)),
        "count": integer("Signals of success to wait for.", default=1, constraints=(between(1, 1000),)),
    }
    attributes = {"data": Attribute("JSON of what each signal has brought, by its id.")}


class AwsWaitCondition(WaitCondition):
    name = "AWS::CloudFormation::WaitCondition"
    words = ("Handle", "Timeout", "Count")
    data = "Data"
    properties = {
        "Handle": text("The handle that takes the signals.", required=True),
        "Timeout": integer("Seconds to wait.", required=True, constraints=(between(1, TIMEOUT_MAX_S),)),
        "Count": integer("Signals of success to wait for.", default=1, update=True, constraints=(between(1),)),
    }
    attributes = {"Data": Attribute("JSON of what each signal has brought, by its id.", live=True)}


TYPES = [
    WaitCondition,
    WaitConditionHandle,
    UpdateWaitConditionHandle,
    SwiftSignal,
    SwiftSignalHandle,
    AwsWaitCondition,
    AwsWaitConditionHandle,
]
