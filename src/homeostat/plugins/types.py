"""Classes with handlers as resource types for the planner: schemas and pure functions.

The handlers are run by `plugins.cloud`.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from homeostat.model.errors import Rejected, Terminal, invalid
from homeostat.model.observed import READY, Condition, Remedy, Verdict
from homeostat.plugins import exception
from homeostat.plugins.attributes import schemata
from homeostat.plugins.properties import Properties, native_schema
from homeostat.plugins.properties import schemata as property_schemata
from homeostat.plugins.resource import Definition, Resource, Stack, TemplateDiff
from homeostat.plugins.translation import translated
from homeostat.resources import comparison, registry
from homeostat.resources.base import MaintenanceMethod, Props, ResourceType, Thing
from homeostat.resources.schema import UNKNOWN

LOG = logging.getLogger(__name__)
COMPLETE, WORKING, DELETING = "complete", "working", "deleting"
FAILED, SPOILT, REPLACE, AGAIN = "failed", "spoilt", "replace", "again"
"""Status words of resources with handlers.

`complete`: as desired; `working`: a handler runs or is polled; `deleting`: likewise, for a deletion; `failed`: the user
has to fix the resource; `spoilt`: delete and recreate; `replace`: the handler asked for a replacement; `again`: repeat
the update.
"""
REMEDIES = {FAILED: Remedy.MANUAL, SPOILT: Remedy.RECREATE, REPLACE: Remedy.REPLACE, AGAIN: Remedy.UPDATE}


PLUGIN_KIND = "plugin:"
"""The prefix of the kinds of such types."""


def kind_of_class(type_name: str) -> str:
    """Return the kind of a type in the cloud port."""
    return f"{PLUGIN_KIND}{type_name}"


class PluginType(ResourceType):
    """Base class of the resource types for classes with handlers; `plugin_class` is the class."""

    name = ""
    plugin_class: ClassVar[type[Resource]] = Resource

    # -- before anything exists --------------------------------------------------------------------------------------

    def check(self, provided: Props, path: tuple[str | int, ...] = ()) -> dict[str, Any]:
        schema = self.plugin_class.properties_schema
        return super().check(
            {name: schema[name].convert(value) if name in schema else value for name, value in provided.items()}, path
        )

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Let the class validate the values.

        Errors for unrelated reasons, such as a service that does not answer, are left to its handlers.
        """
        try:
            problem = self._detached(_known(values)).validate()
            self._translated(values)
        except exception.StackValidationFailed as error:
            raise invalid(error.error_message, *path, *error.path, error=error.error) from error
        except (exception.HeatException, ValueError) as error:
            raise invalid(str(error), *path) from error
        except Exception:
            LOG.warning("%s could not be asked whether its properties fit", self.name, exc_info=True)
        else:
            if problem:
                raise invalid(str(problem), *path)

    def complete(self, values: Props) -> dict[str, Any]:
        try:
            return self._translated(values)
        except Exception:
            LOG.warning("the translation rules of %s fail, and are left out", self.name, exc_info=True)
            return super().complete(values)

    def _translated(self, values: Props) -> dict[str, Any]:
        """Return the values with defaults, and with the translation rules applied except RESOLVE.

        Raises:
            StackValidationFailed: The old and the new name of a property are both set.
        """
        completed = super().complete(values)
        if self.plugin_class.translation_rules is Resource.translation_rules:
            return completed
        rules = self._detached(completed).translation_rules(Properties(self.plugin_class.properties_schema, completed))
        return translated(rules, completed) if rules else completed

    # -- acting ------------------------------------------------------------------------------------------------------

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"properties": dict(values), "physical_name": physical_name}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        frozen = [name for name in sorted(changed) if self.properties[name].immutable]
        if frozen:
            raise invalid(f"Update to property {frozen[0]} of {self.name} is not supported", frozen[0])
        may = set(self.plugin_class.update_allowed_properties)
        fixed = [name for name in sorted(changed - may) if not self.properties[name].update]
        if fixed:
            return f"{', '.join(fixed)} cannot change in place"
        return self._plugin_replacement_reason(before, after, changed)

    def _plugin_replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        resource = self._detached(before)
        schema = self.plugin_class.properties_schema
        old, new = Properties(schema, before), Properties(schema, after)
        diff = TemplateDiff(Properties=bool(changed))
        try:
            wanted = (
                resource.needs_replace_with_prop_diff(set(changed), new, old)
                or resource.needs_replace_with_tmpl_diff(diff)
                or resource.needs_replace(new)
            )
        except exception.UpdateReplace:
            wanted = True
        except Exception as error:
            raise Terminal(f"{self.name} could not say whether it needs a replacement: {error!r}") from error
        return f"{self.name} wants to be replaced for {', '.join(sorted(changed))}" if wanted else ""

    def _detached(self, values: Mapping[str, Any]) -> Resource:
        """Return an instance without a cloud object, which can make decisions but not store anything."""
        return self.plugin_class(self.name, Definition(self.name, self.name, values), Stack())

    def maintenance_method(self, thing: Thing, action: str) -> MaintenanceMethod | None:
        """Return the method that calls `handle_suspend` and so on, if the class has it."""
        verb = action.lower()
        has = callable(getattr(self.plugin_class, f"handle_{verb}", None))
        return MaintenanceMethod(verb, observed_field="action", done=(action,)) if has else None

    # -- looking -----------------------------------------------------------------------------------------------------

    def fitness(self, thing: Thing, now: float) -> Verdict:
        seen = thing.seen.properties
        status, fault = seen.get("status"), str(seen.get("fault") or "")
        if status in (WORKING, DELETING):
            return Verdict(Condition.PENDING, f"its {str(seen.get('action', 'act')).lower()} goes on")
        if status in REMEDIES:
            return Verdict(Condition.BROKEN, fault, REMEDIES[status])
        drifted = self.changed_outside(thing)
        if drifted:
            return Verdict(Condition.DRIFTED, f"{', '.join(drifted)} changed outside", Remedy.UPDATE, drifted=drifted)
        return READY

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return the names of properties whose live value differs from the desired one."""
        live = thing.seen.properties.get("live") or {}
        return tuple(
            name
            for name, value in live.items()
            if name in self.properties
            and self.properties[name].update
            and thing.properties.get(name) not in (None, "", [], {})
            and not comparison.equal(thing.properties[name], value)
        )

    def observed_properties(self, thing: Thing) -> dict[str, Any]:
        live = thing.seen.properties.get("live") or {}
        return {name: value for name, value in live.items() if thing.properties.get(name) is not None}

    # -- answering ---------------------------------------------------------------------------------------------------

    def reference(self, thing: Thing) -> Any:
        seen = thing.seen.properties
        return seen.get("reference") or seen.get("id") or thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        return (thing.seen.properties.get("attributes") or {}).get(name)

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        """Return the value of an attribute.

        Raises:
            Rejected: The method of the attribute raised an error, and the attribute never had a value.
        """
        fault = _faults(thing).get(name)
        if fault is not None:
            raise _unreadable(thing, name, fault)
        return super().resolve(thing, name, path)

    def all_attributes(self, thing: Thing) -> dict[str, Any]:
        return {name: self.resolve(thing, name) for name in self.attributes if name != "show"}

    def readable_attributes(self, thing: Thing) -> tuple[dict[str, Any], dict[str, str]]:
        faults = _faults(thing)
        names = [name for name in self.attributes if name != "show" and name not in faults]
        values = {name: self.attribute(thing, name) for name in names}
        return values, {name: str(_unreadable(thing, name, fault)) for name, fault in faults.items()}

    def show(self, thing: Thing) -> Any:
        return self.attribute(thing, "show")


def _unreadable(thing: Thing, name: str, fault: str) -> Rejected:
    return invalid(fault, "resources", thing.name, "attributes", name)


def _faults(thing: Thing) -> dict[str, str]:
    """Return the errors of unreadable attributes that never had a value."""
    seen = thing.seen.properties
    values = seen.get("attributes") or {}
    return {name: fault for name, fault in (seen.get("attribute_faults") or {}).items() if name not in values}


def _known(values: Props) -> dict[str, Any]:
    """Return the values without unknown ones."""
    return {name: _bare(value) for name, value in values.items() if value is not UNKNOWN}


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _bare(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    return None if value is UNKNOWN else value


def takes_signals(type_name: str) -> bool:
    """Return whether a type has a handler for signals."""
    kind = registry.types().get(type_name)
    return isinstance(kind, PluginType) and callable(getattr(kind.plugin_class, "handle_signal", None))


def plugin_type(name: str, plugin_class: type[Resource]) -> type[PluginType]:
    """Create the resource type of a class with handlers.

    Raises:
        TypeError: The class cannot be a resource type.
        ValueError: A schema of the class is wrong.
    """
    if not (isinstance(plugin_class, type) and issubclass(plugin_class, Resource)):
        raise TypeError(f"{plugin_class!r} is no subclass of Resource")
    if plugin_class.needs:
        raise TypeError(f"it is a {plugin_class.needs}, which plug-ins cannot be here")
    if any(isinstance(entry, Mapping) for entry in plugin_class.properties_schema.values()):
        plugin_class.properties_schema = property_schemata(plugin_class.properties_schema)
    properties = native_schema(plugin_class.properties_schema)
    attributes = {
        attribute: schema.attribute() for attribute, schema in schemata(plugin_class.attributes_schema).items()
    }
    return type(
        plugin_class.__name__,
        (PluginType,),
        {
            "__doc__": plugin_class.__doc__,
            "name": name,
            "kind": kind_of_class(name),
            "description": (plugin_class.__doc__ or "").strip().partition("\n")[0],
            "properties": properties,
            "attributes": attributes,
            "update_policy": native_schema(plugin_class.update_policy_schema),
            "support": plugin_class.support_status.support(),
            "can_snapshot": hasattr(plugin_class, "handle_snapshot_delete"),
            "plugin_class": plugin_class,
        },
    )
