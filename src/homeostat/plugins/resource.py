"""The base class of types with handlers, and the objects that an instance can use.

An instance lives for one call of the service. Data for later calls is stored with `resource_id_set`, `data_set` or
`metadata_set`, or in the return value of a handler, which must be plain data. Each of these is stored at once.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from homeostat.plugins import attributes as attributes_module
from homeostat.plugins.clients import Clients
from homeostat.plugins.exception import (
    EntityNotFound,
    Error,
    NoActionRequired,
    NotSupported,
    PollDelay,
    ResourceActionNotSupported,
    ResourceFailure,
    ResourceInError,
    ResourceNotAvailable,
    ResourceUnknownStatus,
    StackValidationFailed,
    UpdateInProgress,
    UpdateReplace,
)
from homeostat.plugins.properties import Properties, Schema
from homeostat.plugins.support import SupportStatus
from homeostat.plugins.translation import TranslationRule

SHORTEST_NAME = 4


class ResourceStore(Protocol):
    """Storage for the data of an instance."""

    def store_id(self, physical_id: str | None) -> None: ...

    def store_data(self, key: str, value: str | None, *, redact: bool) -> None: ...

    def store_metadata(self, metadata: Any) -> None: ...


class NoStore:
    """Store of instances that only make decisions: storing anything is an error."""

    def store_id(self, physical_id: str | None) -> None:
        raise NotSupported(feature="Changing a resource while its type is only asked something")

    def store_data(self, key: str, value: str | None, *, redact: bool) -> None:
        self.store_id(None)

    def store_metadata(self, metadata: Any) -> None:
        self.store_id(None)


@dataclass(slots=True)
class Context:
    """The project and the user on whose behalf a handler runs."""

    tenant_id: str = ""
    user_id: str | None = None
    username: str | None = None
    auth_token: str | None = None
    request_id: str | None = None

    @property
    def project_id(self) -> str:
        return self.tenant_id

    @property
    def keystone_session(self) -> Any:
        """Refused: raises NotSupported."""
        raise NotSupported(feature="A session with Keystone for plug-ins: the service keeps no login of users, which")


@dataclass(slots=True)
class Stack:
    """The stack of a resource, as a mapping of its resources whose types have handlers, by name.

    These resources have their stored state; they can be read, but not changed.

    Attributes:
        context: The project and the user.
        peers: Returns the resources.
    """

    name: str = ""
    id: str = ""
    context: Context = field(default_factory=Context)
    peers: Callable[[], Mapping[str, "Resource"]] = dict

    def resource_by_refid(self, refid: Any) -> "Resource | None":
        """Return the resource with this reference id, as returned by `get_resource`; None if there is none."""
        return next((peer for peer in self.peers().values() if str(peer.get_reference_id()) == str(refid)), None)

    def __getitem__(self, name: str) -> "Resource":
        """Return a resource by name; raise KeyError if there is none."""
        return self.peers()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.peers()

    def __iter__(self) -> Iterator[str]:
        return iter(self.peers())

    def __len__(self) -> int:
        return len(self.peers())

    def get(self, name: str, default: Any = None) -> Any:
        return self.peers().get(name, default)

    def values(self) -> Collection["Resource"]:
        return self.peers().values()

    def items(self) -> Collection[tuple[str, "Resource"]]:
        return self.peers().items()

    def stack_name(self) -> str:
        return self.name

    def identifier(self) -> dict[str, str]:
        return {"tenant": self.context.tenant_id, "stack_name": self.name, "stack_id": self.id, "path": ""}


class Definition:
    """The definition of a resource, its functions resolved."""

    def __init__(
        self,
        name: str,
        resource_type: str,
        properties: Mapping[str, Any] | None = None,
        metadata: Any = None,
        **_sections: Any,
    ) -> None:
        self.name = name
        self.resource_type = resource_type
        self._values = dict(properties or {})
        self._metadata = metadata

    def properties(self, schema: Mapping[str, Schema], context: Any = None) -> Properties:
        return Properties(schema, self._values)

    def metadata(self) -> Any:
        return self._metadata or {}

    def __getitem__(self, section: str) -> Any:
        sections = {"Type": self.resource_type, "Properties": self._values, "Metadata": self.metadata()}
        return sections[section]

    def freeze(self, **sections: Any) -> "Definition":
        """Return the same definition with other `properties` or `metadata`."""
        values = sections.get("properties", self._values)
        return Definition(self.name, self.resource_type, values, sections.get("metadata", self._metadata))

    def get(self, section: str, default: Any = None) -> Any:
        return self[section] if section in ("Type", "Properties", "Metadata") else default


ResourceDefinition = Definition


class TemplateDiff(dict[str, bool]):
    """The sections in which two definitions differ."""

    def properties_changed(self) -> bool:
        return self.get("Properties", False)

    def metadata_changed(self) -> bool:
        return self.get("Metadata", False)

    def update_policy_changed(self) -> bool:
        return self.get("UpdatePolicy", False)


class Resource:
    """Base class of types with handlers; plug-ins define or override its class attributes and methods."""

    ACTIONS = (INIT, CREATE, DELETE, UPDATE, ROLLBACK, SUSPEND, RESUME, ADOPT, SNAPSHOT, CHECK) = (
        "INIT",
        "CREATE",
        "DELETE",
        "UPDATE",
        "ROLLBACK",
        "SUSPEND",
        "RESUME",
        "ADOPT",
        "SNAPSHOT",
        "CHECK",
    )
    STATUSES = (IN_PROGRESS, FAILED, COMPLETE) = ("IN_PROGRESS", "FAILED", "COMPLETE")
    BASE_ATTRIBUTES = (SHOW,) = ("show",)

    properties_schema: ClassVar[Mapping[str, Schema]] = {}
    attributes_schema: ClassVar[Mapping[str, Any]] = {}
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {}
    base_attributes_schema: ClassVar[Mapping[str, Any]] = {
        "show": attributes_module.Schema("Everything that is known of it.", type=attributes_module.Schema.MAP)
    }
    support_status: ClassVar[SupportStatus] = SupportStatus()
    default_client_name: ClassVar[str | None] = None
    required_service_extension: ClassVar[str | None] = None
    entity: ClassVar[str | None] = None
    update_allowed_properties: ClassVar[Sequence[str]] = ()
    physical_resource_name_limit: ClassVar[int | None] = 255
    requires_deferred_auth: ClassVar[bool] = False
    strict_dependency: ClassVar[bool] = True
    no_signal_actions: ClassVar[Sequence[str]] = (SUSPEND, DELETE)
    signal_needs_metadata_updates: ClassVar[bool] = True
    always_replace_on_check_failed: ClassVar[bool] = True
    needs: ClassVar[str] = ""
    """A feature that types of this class need and that is not available; "" for none."""

    _physical_name = ""

    def __init__(self, name: str, definition: Definition, stack: Stack) -> None:
        self.name = name
        self.t = definition
        self.stack = stack
        self.context = stack.context
        self.resource_id: str | None = None
        self.uuid = self.id = ""
        self.action, self.status, self.status_reason = self.INIT, self.COMPLETE, ""
        self.properties = definition.properties(self.properties_schema)
        self._data: dict[str, str] = {}
        self.attributes = attributes_module.Attributes(name, self._all_attributes(), self._resolve_any_attribute)
        self._metadata = definition.metadata()
        self._keeper: ResourceStore = NoStore()
        self._clients = Clients(self.context)

    def __str__(self) -> str:
        return f'{type(self).__name__} "{self.name}" [{self.resource_id or ""}]'

    def _all_attributes(self) -> dict[str, Any]:
        return {**self.base_attributes_schema, **self.attributes_schema}

    def _resolve_any_attribute(self, name: str) -> Any:
        return self._show_resource() if name == self.SHOW else self._resolve_attribute(name)

    # -- identity and context ----------------------------------------------------------------------------------------

    @property
    def state(self) -> tuple[str, str]:
        return self.action, self.status

    def type(self) -> str:
        return self.t.resource_type

    def has_interface(self, resource_type: str) -> bool:
        return self.type() == resource_type

    def physical_resource_name(self) -> str:
        """Return the unique physical name of the resource.

        The name is the same at every call and known before the creation, so an object with this name can be found after
        a crash.
        """
        name, limit = self._physical_name or self.name, self.physical_resource_name_limit
        return name if limit is None else self.reduce_physical_resource_name(name, limit)

    @staticmethod
    def reduce_physical_resource_name(name: str, limit: int) -> str:
        """Shorten a name to its first two characters, a dash, and its end.

        Raises:
            ValueError: The limit is below 4.
        """
        if limit < SHORTEST_NAME:
            raise ValueError(f"limit cannot be less than {SHORTEST_NAME}")
        return name if len(name) <= limit else f"{name[:2]}-{name[-(limit - 3) :]}"

    def physical_resource_name_or_FnGetRefId(self) -> str:
        return self.physical_resource_name() if self.resource_id is None else str(self.get_reference_id())

    def client(self, name: str | None = None, version: Any = None) -> Any:
        return self._clients.client_plugin(name or self.default_client_name).client()

    def client_plugin(self, name: str | None = None) -> Any:
        return self._clients.client_plugin(name or self.default_client_name)

    # -- stored data -------------------------------------------------------------------------------------------------

    def resource_id_set(self, inst: Any) -> None:
        """Store the physical id at once, so that no crash loses it."""
        physical_id = None if inst is None else str(inst)
        self._keeper.store_id(physical_id)
        self.resource_id = physical_id

    def data(self) -> dict[str, str]:
        return dict(self._data)

    def data_set(self, key: str, value: Any, redact: bool = False) -> None:
        """Store a text under a name; with `redact` the text is treated as secret."""
        text = str(value)
        self._keeper.store_data(key, text, redact=redact)
        self._data[key] = text

    def data_delete(self, key: str) -> bool:
        self._keeper.store_data(key, None, redact=False)
        return self._data.pop(key, None) is not None

    def data_delete_all(self) -> None:
        for key in list(self._data):
            self.data_delete(key)

    def metadata_get(self, refresh: bool = False) -> Any:
        return self._metadata

    def metadata_set(self, metadata: Any, merge_metadata: Any = None) -> None:
        wanted = merge_metadata(metadata, self._metadata) if merge_metadata is not None else metadata
        self._keeper.store_metadata(wanted)
        self._metadata = wanted

    def state_set(self, action: str, status: str, reason: str = "state changed") -> None:
        """Set the state for this call only: the stored state follows from the return values of handlers."""
        self.action, self.status, self.status_reason = action, status, reason

    # -- actions -----------------------------------------------------------------------------------------------------

    def handle_update(self, json_snippet: Definition, tmpl_diff: TemplateDiff, prop_diff: Mapping[str, Any]) -> Any:
        if prop_diff:
            raise UpdateReplace(self.name)

    def handle_delete(self) -> Any:
        """Delete the object by the client, if the type names an entity of the client."""
        manager = self._manager() if self.resource_id is not None else None
        if manager is not None:
            with self.client_plugin().ignore_not_found:
                manager.delete(self.resource_id)

    def handle_adopt(self, resource_data: Mapping[str, Any] | None = None) -> Any:
        adopted = resource_data or {}
        for key, value in (adopted.get("resource_data") or {}).items():
            self.data_set(key, value)
        if adopted.get("metadata"):
            self.metadata_set(adopted["metadata"])
        self.resource_id_set(adopted.get("resource_id"))

    def validate(self) -> Any:
        """Check rules that span several properties; unknown properties are None.

        Raises:
            StackValidationFailed: The properties do not fit together.
        """

    def _manager(self) -> Any:
        return getattr(self.client(), self.entity) if self.default_client_name and self.entity else None

    def _verify_check_conditions(self, checks: Sequence[Mapping[str, Any]]) -> None:
        """Compare attributes with expected values.

        Raises:
            Error: The message names each attribute whose `current` value is not among the `expected` ones.
        """
        wrong = [
            f"'{check['attr']}': expected '{check['expected']}', got '{check['current']}'"
            for check in checks
            if check["current"]
            not in (check["expected"] if isinstance(check["expected"], list) else [check["expected"]])
        ]
        if wrong:
            raise Error("; ".join(wrong))

    # -- attributes --------------------------------------------------------------------------------------------------

    def _resolve_attribute(self, name: str) -> Any:
        """Return the value of an attribute; None if unknown."""

    def _show_resource(self) -> Any:
        manager = self._manager() if self.resource_id is not None else None
        if manager is None:
            return None
        answer = manager.get(self.resource_id)
        return answer.to_dict() if hasattr(answer, "to_dict") else dict(answer)

    def get_attribute(self, key: str, *path: Any) -> Any:
        return attributes_module.select_from_attribute(self._resolve_any_attribute(key), path)

    def get_reference_id(self) -> Any:
        return self.resource_id if self.resource_id is not None else self.name

    FnGetRefId = get_reference_id
    FnGetAtt = get_attribute

    # -- decisions, without acting -----------------------------------------------------------------------------------

    def needs_replace(self, after_props: Properties) -> bool:
        return False

    def needs_replace_with_prop_diff(
        self, changed_properties_set: set[str], after_props: Properties, before_props: Properties
    ) -> bool:
        return False

    def needs_replace_with_tmpl_diff(self, tmpl_diff: TemplateDiff) -> bool:
        return False

    def translation_rules(self, props: Properties) -> Sequence[TranslationRule] | None:
        """Return the rules that convert the values of a template to the values for handlers."""

    # -- live state --------------------------------------------------------------------------------------------------

    def get_live_resource_data(self) -> Any:
        """Return the external service's report on the object.

        Raises:
            EntityNotFound: The object is missing.
        """
        try:
            return self._show_resource()
        except Exception as error:
            if self.default_client_name and self.client_plugin().is_not_found(error):
                raise EntityNotFound(entity="Resource", name=self.name) from error
            raise

    def parse_live_resource_data(self, resource_properties: Properties, resource_data: Any) -> dict[str, Any]:
        """Return the live values of the properties that can change in place."""
        live = resource_data if isinstance(resource_data, Mapping) else {}
        return {
            name: live[name] for name, prop in self.properties_schema.items() if prop.update_allowed and name in live
        }

    def get_live_state(self, resource_properties: Properties) -> dict[str, Any]:
        return self.parse_live_resource_data(resource_properties, self.get_live_resource_data())


__all__ = [
    "Context",
    "Definition",
    "EntityNotFound",
    "NoActionRequired",
    "PollDelay",
    "Resource",
    "ResourceActionNotSupported",
    "ResourceFailure",
    "ResourceInError",
    "ResourceNotAvailable",
    "ResourceUnknownStatus",
    "Stack",
    "StackValidationFailed",
    "TemplateDiff",
    "UpdateInProgress",
    "UpdateReplace",
]
