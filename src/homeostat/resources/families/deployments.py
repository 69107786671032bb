"""Types of software deployments: configs applied to servers, action by action, as in Heat. Pure.

For each action of a deployment, a config is derived: the user's config, with the values of its inputs, and with
further inputs for reporting the result. The server reads it from its metadata, applies it, and signals the outputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.model.errors import InvalidTemplateAttribute, Terminal, invalid
from homeostat.model.observed import READY, Condition, Verdict
from homeostat.resources.base import Props, ResourceType, Thing, passed_on, settling
from homeostat.resources.families.configs import ACTIONS, UNGROUPED
from homeostat.resources.graph import Graph, mentioned
from homeostat.resources.schema import Attribute, Property, listing, mapping, one_of, text
from homeostat.resources.signals import Transport

DEPLOYMENT = "software_deployment"
IN_PROGRESS, COMPLETE, FAILED = "IN_PROGRESS", "COMPLETE", "FAILED"
STDOUT, STDERR, STATUS_CODE = "deploy_stdout", "deploy_stderr", "deploy_status_code"
STRUCTURED, LAX, STRICT = "structured", "LAX", "STRICT"
LOGIN = {
    "auth_url": "Address of Keystone, for whom",
    "username": "Name of the user",
    "user_id": "ID of the user",
    "password": "Password of the user",
    "project_id": "ID of the project of the user",
    "region_name": "Region of the API, for the user",
    "queue_id": "Queue for messages of the user",
}
"""Fields of a login that a server receives -> their descriptions; each is an input of the derived config."""
Wire = dict[str, Any]


# -- deriving ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deploying:
    """An action of a deployment.

    Attributes:
        action: The action, such as CREATE.
        stack: `name/id` of the stack.
        resource: Name of the deployment in its template.
        transport: How the server signals the outputs.
        signal_id: URL that receives the outputs; "" if no outputs are expected.
        verb: HTTP method for the URL.
        login: Login of the user who signals the outputs by the API instead.
    """

    action: str
    server: str
    stack: str
    resource: str
    transport: str
    signal_id: str = ""
    verb: str = "POST"
    login: Mapping[str, str] = field(default_factory=dict)


def applies(config: Mapping[str, Any], spec: Mapping[str, Any], action: str) -> bool:
    """Return whether there is anything to do for an action; a component has its own list of actions."""
    if config.get("group") != "component":
        return action in spec["actions"]
    return any(action in component.get("actions", ()) for component in (config.get("config") or {}).get("configs", ()))


def derived(config: Mapping[str, Any], spec: Mapping[str, Any], deploying: Deploying) -> Wire:
    """Return the derived config, which the server receives.

    Args:
        config: The user's config in the stored form.
        spec: The deployment's desired object.

    Raises:
        Terminal: A strict deployment uses an input without a value.
    """
    input_values = spec["input_values"] or {}
    inputs = [_with_value(declared, input_values) for declared in config.get("inputs") or ()]
    known = {entry["name"] for entry in inputs}
    inputs += [
        {"name": name, "type": "String", "value": value} for name, value in input_values.items() if name not in known
    ]
    document = config.get("config", "")
    if spec.get("form") == STRUCTURED:
        document = substituted(document, spec["input_key"], {entry["name"]: entry["value"] for entry in inputs}, spec)
    return {
        "name": spec["name"],
        "group": config.get("group") or UNGROUPED,
        "config": document,
        "options": config.get("options") or {},
        "inputs": [*inputs, *_deployment_inputs(deploying)],
        "outputs": config.get("outputs") or [],
    }


def _with_value(declared: Mapping[str, Any], input_values: Mapping[str, Any]) -> Wire:
    return {**declared, "value": input_values.get(declared["name"], declared.get("default"))}


def _deployment_inputs(deploying: Deploying) -> list[Wire]:
    """Return the inputs that describe the deployment to the server, besides the user's inputs."""
    values = {
        "deploy_server_id": ("ID of the server being deployed to", deploying.server),
        "deploy_action": ("Name of the current action being deployed", deploying.action),
        "deploy_stack_id": ("ID of the stack this deployment belongs to", deploying.stack),
        "deploy_resource_name": ("Name of this deployment resource in the stack", deploying.resource),
        "deploy_signal_transport": ("How the server should signal the outputs", deploying.transport),
    }
    if deploying.signal_id:
        values["deploy_signal_id"] = ("Address that takes the outputs", deploying.signal_id)
        values["deploy_signal_verb"] = ("HTTP method to use there", deploying.verb)
    values |= {
        f"deploy_{name}": (f"{described} to tell the outputs as", deploying.login[name])
        for name, described in LOGIN.items()
        if name in deploying.login
    }
    return [
        {"name": name, "type": "String", "description": described, "value": value}
        for name, (described, value) in values.items()
    ]


def substituted(tree: Any, key: str, values: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    """Return the tree with each `{key: name}` replaced by the value of the named input."""
    if isinstance(tree, Mapping):
        if len(tree) == 1 and key in tree:
            return _value(tree[key], values, spec)
        return {name: substituted(item, key, values, spec) for name, item in tree.items()}
    return [substituted(item, key, values, spec) for item in tree] if isinstance(tree, list) else tree


def _value(name: Any, values: Mapping[str, Any], spec: Mapping[str, Any]) -> Any:
    if not isinstance(name, str):
        raise Terminal(f"{spec['input_key']} takes the name of an input, not {name!r}")
    if values.get(name) is None and spec.get("strict"):
        raise Terminal(f"UserParameterMissing: The Parameter ({name}) was not provided: give it among input_values.")
    return values.get(name)


# -- outputs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a deployment in progress, from its signal.

    Attributes:
        outputs: Values of the outputs by name.
        status: COMPLETE or FAILED.
        event: Text for the event list.
    """

    outputs: Mapping[str, Any]
    status: str
    reason: str
    event: str


def outcome(id: str, outputs: Iterable[Mapping[str, Any]], body: Mapping[str, Any] | None) -> Outcome:
    """Evaluate the signal of a deployment.

    Args:
        outputs: Outputs declared by its config; every config also has stdout, stderr and the status code.
    """
    signal = dict(body or {})
    values: Wire = {}
    wrong: dict[str, str] = {}
    for output in outputs:
        name = output["name"]
        if name in signal:
            values[name] = signal[name]
            if output.get("error_output"):
                wrong[name] = str(signal[name])
    for name in (STDOUT, STDERR, STATUS_CODE):
        values[name] = signal.get(name)
    code = str(signal.get(STATUS_CODE) or 0)
    if code != "0":
        wrong[STATUS_CODE] = f"Deployment exited with non-zero status code: {code}"
    if not wrong:
        return Outcome(values, COMPLETE, "Outputs received", f"deployment {id} succeeded")
    reason = ", ".join(f"{name} : {text}" for name, text in wrong.items())
    return Outcome(values, FAILED, reason, f"deployment {id} failed ({code})")


# -- types -------------------------------------------------------------------------------------------------------------

_TRANSPORTS = one_of(*(transport for transport in Transport if transport is not Transport.TOKEN))
_PROPERTIES: dict[str, Property] = {
    "config": text("The config to apply; without one, the inputs alone are given.", update=True),
    "server": text("The server to apply it to.", required=True),
    "input_values": mapping("Values for the inputs of the config.", update=True),
    "actions": listing(
        "Actions of the stack on which it is applied.",
        default=["CREATE", "UPDATE"],
        update=True,
        constraints=(one_of(*ACTIONS),),
    ),
    "name": text("Name of the derived config; servers apply configs in the order of names.", update=True),
    "signal_transport": text("How the server tells the outputs.", default=Transport.CFN, constraints=(_TRANSPORTS,)),
}
STRUCTURED_PROPERTIES: dict[str, Property] = {
    "input_key": text("Key of the maps that stand for inputs.", default="get_input"),
    "input_values_validate": text(
        "Whether an input without a value is null (LAX) or an error (STRICT).",
        default=LAX,
        constraints=(one_of(LAX, STRICT),),
    ),
}
_ATTRIBUTES = {
    STDOUT: Attribute("What the config has written to standard output."),
    STDERR: Attribute("What the config has written to standard error."),
    STATUS_CODE: Attribute("With what code the config has ended."),
}


class SoftwareDeployment(ResourceType):
    secretive = True
    name = "OS::Heat::SoftwareDeployment"
    kind = DEPLOYMENT
    description = "Applies a config to a server, and waits for its outputs."
    properties = _PROPERTIES
    unsent = {"server", "signal_transport"}
    attributes = _ATTRIBUTES
    open_attributes = True
    maintenance_methods = passed_on("SUSPEND", "RESUME")

    def validate_among(self, properties: Props, graph: Graph, path: tuple[str | int, ...]) -> None:
        """Check that a server in this template reads software configs."""
        check_servers(properties.get("server"), graph, path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {
            "name": values.get("name") or physical_name,
            "config": values.get("config") or "",
            "server_id": values["server"],
            "input_values": values.get("input_values") or {},
            "actions": list(values.get("actions") or []),
            "transport": values["signal_transport"],
        }

    def observed_replacement_reason(self, thing: Thing, after: Props) -> str:
        """Return why a replacement is needed: an input with `replace_on_change` has a new value."""
        fixed = thing.seen.properties.get("replace_on_change") or {}
        input_values = after.get("input_values") or {}
        changed = sorted(name for name, (value, default) in fixed.items() if input_values.get(name, default) != value)
        return f"inputs {', '.join(changed)} have changed, which are replaced on change" if changed else ""

    def fitness(self, thing: Thing, now: float) -> Verdict:
        verdict = settling(thing, self.statuses)
        if verdict is None:
            return READY
        reason = thing.seen.properties.get("status_reason") or ""
        if verdict.condition is Condition.BROKEN:
            return replace(verdict, reason=f"Deployment to server failed: {reason}")
        return replace(verdict, reason=f"it waits for the server to tell its outputs: {reason}")

    def drift(self, thing: Thing) -> tuple[str, ...]:
        return ()

    def attribute(self, thing: Thing, name: str) -> Any:
        """Return the value of an output; outputs declared by the config are attributes as well.

        Raises:
            InvalidTemplateAttribute: The output is neither declared by the config nor reported by the server.
        """
        values, declared = thing.seen.properties.get("output_values") or {}, thing.seen.properties.get("declared")
        if declared is not None and name not in values and name not in declared and name not in self.attributes:
            raise InvalidTemplateAttribute(thing.name, name)
        return values.get(name)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return {**super().all_attributes(thing), **(thing.seen.properties.get("output_values") or {})}


class StructuredDeployment(SoftwareDeployment):
    name = "OS::Heat::StructuredDeployment"
    description = "Applies a map to a server, with values put in for its inputs."
    properties = {**_PROPERTIES, **STRUCTURED_PROPERTIES}
    unsent = {*SoftwareDeployment.unsent, "input_values_validate"}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {
            **super().spec(values, physical_name),
            "form": STRUCTURED,
            "input_key": values["input_key"],
            "strict": values["input_values_validate"] == STRICT,
        }


def check_servers(raw: Any, graph: Graph, path: Sequence[str | int]) -> None:
    """Check that all servers of this template in a raw value read software configs.

    Raises:
        Rejected: A server does not.
    """
    for name in sorted(mentioned(raw) & graph.keys()):
        kind, properties = graph[name]
        if kind == "OS::Nova::Server" and properties.get("user_data_format") in (None, "RAW", "HEAT_CFNTOOLS"):
            message = f"{name} does not read deployments: give it user_data_format SOFTWARE_CONFIG"
            raise invalid(message, *path, "server", error="Property error")


def replaced_on_change(config: Mapping[str, Any]) -> Mapping[str, tuple[Any, Any]]:
    """Return the inputs with `replace_on_change`: name -> (value, default)."""
    return {
        entry["name"]: (entry.get("value"), entry.get("default"))
        for entry in config.get("inputs") or ()
        if entry.get("replace_on_change")
    }


TYPES = [SoftwareDeployment, StructuredDeployment]
