"""Operations and recoveries that users request, as requests for the resources of nodes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.server_profile import SERVER_TYPE
from homeostat.clustering.decisions.specs import Spec, check_operation
from homeostat.model.errors import Rejected
from homeostat.model.requested import CHECK, RECREATE, Aim

DELETE_TIMEOUT_S = 20
"""Default of the seconds for the deletion of a resource that RECREATE replaces."""
DELETE_TIMEOUT_S_MAX = 7200
RENAMED: Mapping[str, Mapping[str, str]] = {"rescue": {"image_ref": "image"}}
"""Operation -> parameter -> its different name in the cloud port."""
NOT_PASSED = frozenset({"force"})
"""Parameters without effect: clouds do not accept them any more."""
RECOVERIES = ("REBOOT", "REBUILD", RECREATE.upper())
PARAMETERS: Mapping[str, frozenset[str]] = {
    "REBOOT": frozenset({"type"}),
    "REBUILD": frozenset({"image"}),
    "RECREATE": frozenset({"fence_compute"}),
}
"""Recovery -> its parameters."""
INPUTS = frozenset({"operation", "operation_params", "check", "delete_timeout", "force_recreate"})
CAPACITY = "check_capacity"


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A request for each of some nodes.

    Attributes:
        operation: See `model.requested.Request`, also for the fields below.
        check_capacity: Whether missing nodes are created.
    """

    operation: str
    aim: Aim
    arguments: Mapping[str, Any] = field(default_factory=dict)
    if_unwell: bool = False
    check_capacity: bool = False

    @property
    def concerns_server(self) -> bool:
        """Whether the request is for the server of a node, not for the whole node."""
        return self.operation != RECREATE


CHECKED = NodeRequest(CHECK, Aim.CHECK)


def operation_of(profile: Spec, name: str, parameters: Any) -> NodeRequest:
    """Check an operation and its parameters, and return the request.

    Raises:
        Rejected: BadRequest.
    """
    checked = check_operation(profile.type, profile.version, name, parameters)
    renamed = RENAMED.get(name, {})
    arguments = {renamed.get(key, key): value for key, value in checked.items() if key not in NOT_PASSED}
    return NodeRequest(name, Aim.OPERATION, arguments)


def recovery_of(profile: Spec, inputs: Mapping[str, Any], *, of_cluster: bool = False) -> NodeRequest:
    """Check the inputs of a recovery, and return the request; the default operation is RECREATE.

    Raises:
        Rejected: BadRequest.
    """
    known = INPUTS | ({CAPACITY} if of_cluster else set())
    operation = inputs.get("operation") or RECREATE
    if not isinstance(operation, str):
        raise _wrong("operation has to be a string.")
    name = operation.upper()
    if name not in RECOVERIES:
        raise _wrong(f"Operation value '{operation}' has to be one of the following: {', '.join(RECOVERIES)}.")
    strange = [name for name in inputs if name not in known]
    if strange:
        raise _wrong(f"Action parameter {strange} is not recognizable.", f"there is {', '.join(sorted(known))}")
    if name != RECREATE.upper() and profile.type is not SERVER_TYPE:
        raise _wrong(f"Recovery action {name} is only applicable to profiles of {SERVER_TYPE.name}; use RECREATE.")
    parameters = _parameters(name, inputs.get("operation_params"))
    flags = {key: _flag(inputs, key) for key in ("check", CAPACITY, "force_recreate")}
    if name == "REBOOT":
        arguments: dict[str, Any] = {"type": _reboot_type(parameters)}
    elif name == "REBUILD":
        arguments = {key: _text(key, value) for key, value in parameters.items() if value}
    else:
        fence = _flag(parameters, "fence_compute")
        timeout_s = _timeout(inputs.get("delete_timeout"))
        arguments = {"delete_timeout": timeout_s, "force": flags["force_recreate"]}
        arguments |= {"fence": ["COMPUTE"]} if fence else {}
    return NodeRequest(name.lower(), Aim.RECOVERY, arguments, flags["check"], flags[CAPACITY])


def _parameters(name: str, parameters: Any) -> Mapping[str, Any]:
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise _wrong("operation_params must be a map.")
    strange = sorted(str(key) for key in parameters if key not in PARAMETERS[name])
    if strange:
        allowed = ", ".join(sorted(PARAMETERS[name]))
        raise _wrong(f"Parameter '{strange[0]}' of the operation {name} is not recognizable; there is {allowed}.")
    return parameters


def _reboot_type(parameters: Mapping[str, Any]) -> str:
    word = str(parameters.get("type") or "HARD").upper()
    if word not in ("SOFT", "HARD"):
        raise _wrong(
            f"Type field '{parameters['type']}' in operation_params has to be one of the following: SOFT, HARD."
        )
    return word


def _flag(inputs: Mapping[str, Any], name: str) -> bool:
    word = str(inputs.get(name, False)).strip().lower()
    if word not in ("true", "false", "none"):
        raise _wrong(f"Invalid value '{inputs[name]}' specified for '{name}'")
    return word == "true"


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(f"The value of '{name}' has to be a string.")
    return value


def _timeout(value: Any) -> int:
    if value is None:
        return DELETE_TIMEOUT_S
    try:
        seconds = int(value) if not isinstance(value, bool) else -1
    except (TypeError, ValueError):
        seconds = -1
    if not 0 <= seconds <= DELETE_TIMEOUT_S_MAX:
        raise _wrong(f"The value for delete_timeout has to be between 0 and {DELETE_TIMEOUT_S_MAX}, not {value!r}.")
    return seconds


def _wrong(message: str, remedy: str = "") -> Rejected:
    return Rejected("BadRequest", message, remedy=remedy)
