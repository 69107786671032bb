"""The base class of types of Neutron objects; their client must be registered as `neutron`."""

from collections.abc import Callable, Mapping
from typing import Any

from homeostat.plugins.exception import PhysicalResourceExists, ResourceInError, ResourceUnknownStatus
from homeostat.plugins.resource import Resource

SPECS = "value_specs"
"""The property whose fields are sent to Neutron together with the properties."""
READY, AT_WORK, BROKEN = ("ACTIVE", "DOWN"), ("BUILD",), ("ERROR", "DEGRADED")


class NeutronResource(Resource):
    """Base class of types of Neutron objects.

    Attributes:
        entity: The entity's name in calls and responses (`show_port`, `{"port": …}`).
        res_info_key: The key in responses, if it differs from `entity`.
    """

    default_client_name = "neutron"
    VALUE_SPECS = SPECS
    res_info_key: str | None = None

    def validate(self) -> Any:
        return super().validate() or self.validate_properties(self.properties)

    @staticmethod
    def validate_properties(properties: Mapping[str, Any]) -> str | None:
        """Return an error if a field of `value_specs` has the name of a property, else None."""
        conflicts = {"shared", "tenant_id", *properties} & set(properties.get(SPECS) or ())
        return f"{', '.join(sorted(conflicts))} not allowed in {SPECS}" if conflicts else None

    @staticmethod
    def prepare_properties(properties: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the body of a creation request.

        Args:
            properties: The properties of the resource.
            name: The name, if the properties give none.
        """
        body = {key: value for key, value in properties.items() if value is not None}
        if "name" in properties:
            body.setdefault("name", name)
        NeutronResource.merge_value_specs(body)
        return body

    @staticmethod
    def merge_value_specs(props: dict[str, Any], before_value_specs: Mapping[str, Any] | None = None) -> None:
        """Move the fields of `value_specs` into the request body.

        Args:
            props: The request body, which is changed.
            before_value_specs: Fields sent before; they are left out unless their value has changed.
        """
        before = before_value_specs or {}
        for key, value in (props.pop(SPECS, None) or {}).items():
            if key not in before or before[key] != value:
                props[key] = value

    def prepare_update_properties(self, prop_diff: dict[str, Any]) -> None:
        """Turn the changed properties into the body of an update request."""
        if SPECS in prop_diff:
            self.merge_value_specs(prop_diff, self.properties[SPECS])
        if "name" in prop_diff and prop_diff["name"] is None:
            prop_diff["name"] = self.physical_resource_name()

    @staticmethod
    def is_built(attributes: Mapping[str, Any]) -> bool:
        """Return whether an object is ready, by its status.

        Raises:
            ResourceInError: The object is broken.
            ResourceUnknownStatus: The status is unknown.
        """
        status = attributes["status"]
        if status in BROKEN:
            raise ResourceInError(resource_status=status)
        if status not in (*READY, *AT_WORK):
            raise ResourceUnknownStatus(resource_status=status, result="Resource is not built")
        return status in READY

    def _res_get_args(self) -> list[Any]:
        return [self.resource_id]

    def _show_resource(self) -> Any:
        if self.resource_id is None or not self.entity:
            return None
        answer = getattr(self.client(), f"show_{self.entity}")(*self._res_get_args())
        return answer[self.res_info_key or self.entity]

    def _resolve_attribute(self, name: str) -> Any:
        entity = self._show_resource() if self.resource_id is not None else None
        return None if entity is None else entity[name]

    def handle_delete(self) -> Any:
        if self.resource_id is None or not self.entity:
            return None
        with self.client_plugin().ignore_not_found:
            getattr(self.client(), f"delete_{self.entity}")(self.resource_id)
            return True
        return None

    def check_delete_complete(self, check: Any) -> bool:
        """Return True after the object has disappeared.

        Raises:
            PhysicalResourceExists: The object still exists; the deletion is repeated later.
        """
        if check and not self._not_found_in_call(self._show_resource):
            raise PhysicalResourceExists(name=self.physical_resource_name_or_FnGetRefId())
        return True

    def _not_found_in_call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        with self.client_plugin().ignore_not_found:
            call(*args, **kwargs)
            return False
        return True
