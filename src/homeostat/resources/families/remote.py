"""Stacks as cloud objects: `OS::Heat::Stack` is a separate stack, in this region or another."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import Rejected, invalid
from homeostat.resources.base import Props, ResourceType, Thing, passed_on
from homeostat.resources.nested import FILES
from homeostat.resources.schema import UNKNOWN, Attribute, ValueType, boolean, integer, mapping, text
from homeostat.templates.parser import parse_template

NOT_OF_A_TEMPLATE = {
    "credential_secret_id": "the service speaks to a region with the login that its operator gave",
    "ca_cert": "authorities are trusted as the operator says (SSL_CERT_FILE)",
    "insecure": "certificates are always checked",
}
"""Unsupported key of the context -> advice."""


class RemoteStack(ResourceType):
    """A stack created through the API of a region: by this service itself, or by another Heat."""

    secretive = True
    name = "OS::Heat::Stack"
    kind = "remote_stack"
    description = "A stack of its own, in this or another region, made through the API there."
    heals_itself = True
    maintenance_methods = passed_on("SUSPEND", "RESUME")
    properties = {
        "context": mapping(
            "Where the stack is made.",
            update=True,
            fields={
                "region_name": text("Region, as the operator of the service calls it; without one, this service."),
                "credential_secret_id": text("Refused: the operator gives the login.", update=True),
                "ca_cert": text("Refused: the operator says whom to trust.", update=True),
                "insecure": boolean("Refused: certificates are always checked.", default=False, update=True),
            },
        ),
        "template": text("Text of the template.", required=True, update=True),
        "timeout": integer("Minutes that an operation may take.", update=True),
        "parameters": mapping("Values for the parameters of the template.", default={}, update=True),
    }
    unsent = {"context", "timeout"}
    attributes = {
        "stack_name": Attribute("Name of the stack.", field="name"),
        "outputs": Attribute("Values of the outputs by name.", ValueType.MAP),
    }

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        values = super().check({name: value for name, value in provided.items() if name != FILES}, path)
        return {**values, FILES: provided[FILES]} if FILES in provided else values

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        provided = values.get("context")
        context = provided if isinstance(provided, Mapping) else {}
        for name, instead in NOT_OF_A_TEMPLATE.items():
            if context.get(name) not in (None, "", False, UNKNOWN):
                raise invalid(f"not supported: {instead}; leave it out", *path, "context", name)
        template = values.get("template")
        if template is not UNKNOWN and template is not None:
            try:
                parse_template(template)
            except Rejected as error:
                raise invalid(error.detail, *path, "template") from error

    def complete(self, values: Props) -> dict[str, Any]:
        return {**super().complete(values), FILES: values.get(FILES)}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "name": physical_name,
            "region": _region(values),
            "template": values["template"],
            "parameters": values["parameters"] or {},
            "files": values.get(FILES) or {},
        }
        return spec if values["timeout"] is None else {**spec, "timeout_mins": values["timeout"]}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        if _region(before) != _region(after):
            return "a stack cannot move to another region"
        return super().replacement_reason(before, after, changed - {FILES})

    def adopted_handle(self, id: str, values: Props) -> str:
        """Return the handle `<region>/<id>`, or the id alone for a stack of this service."""
        return f"{_region(values)}/{id}" if _region(values) and "/" not in id else id

    def shown_id(self, handle: str) -> str:
        """Return the id of the stack, without the region in its handle."""
        return handle.rpartition("/")[2]

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return nothing: the stack is converged by its own region; only its presence and status count here."""
        return ()

    def reference(self, thing: Thing) -> Any:
        """Its id in its region."""
        return self.shown_id(thing.handle) or thing.name


def _region(values: Props) -> str:
    return (values.get("context") or {}).get("region_name") or ""


TYPES = [RemoteStack]
