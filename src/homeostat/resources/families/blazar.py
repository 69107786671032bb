"""Types of reservations: hosts that can be reserved, and leases."""

from typing import Any

from homeostat.resources.base import Props, ResourceType, payload
from homeostat.resources.schema import (
    Attribute,
    Property,
    ValueType,
    between,
    boolean,
    integer,
    listing,
    mapping,
    one_of,
    pattern,
    text,
)
from homeostat.resources.support import Support

TIME = pattern(r"\d{4}-\d{2}-\d{2}\s\d{2}:\d{2}")
OF_A_HOST = ("min", "max", "hypervisor_properties", "before_end")
OF_AN_INSTANCE = ("amount", "vcpus", "memory_mb", "disk_gb", "affinity")


class Host(ResourceType):
    name = "OS::Blazar::Host"
    kind = "reservable_host"
    support = Support(version="12.0.0")
    description = "A host of the cloud that can be reserved."
    properties = {
        "name": text("Name of the host.", required=True),
        "extra_capability": mapping("Further capabilities that a reservation can request."),
    }
    attributes = {
        "hypervisor_hostname": Attribute("Name of the hypervisor."),
        "hypervisor_type": Attribute("Type of the hypervisor."),
        "hypervisor_version": Attribute("Version of the hypervisor.", ValueType.INTEGER),
        "vcpus": Attribute("How many processors it has.", ValueType.INTEGER),
        "cpu_info": Attribute("What processors they are.", ValueType.MAP),
        "memory_mb": Attribute("Its memory in MiB.", ValueType.INTEGER),
        "local_gb": Attribute("Its disk in GiB.", ValueType.INTEGER),
        "service_name": Attribute("Name of the compute service on it."),
        "reservable": Attribute("Whether it can be reserved.", ValueType.BOOLEAN),
        "status": Attribute("Status of the host."),
        "trust_id": Attribute("Trust of its operator."),
        "extra_capability": Attribute("Further capabilities that a reservation can request.", ValueType.MAP),
        "created_at": Attribute("When it was created."),
        "updated_at": Attribute("When it was changed."),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        capabilities = {key: value for key, value in (values.get("extra_capability") or {}).items() if key != "name"}
        return {"name": values["name"], "extra_capability": capabilities}


def _count(description: str) -> Property:
    return integer(description, constraints=(between(0, 2147483647),))


class Lease(ResourceType):
    name = "OS::Blazar::Lease"
    kind = "lease"
    support = Support(version="12.0.0")
    description = "Reservations for a time."
    properties = {
        "name": text("Name of the lease.", required=True),
        "start_date": text("When it begins, as YYYY-MM-DD hh:mm.", required=True, constraints=(TIME,)),
        "end_date": text("When it ends, as YYYY-MM-DD hh:mm.", required=True, constraints=(TIME,)),
        "before_end_date": text("When to act before its end, as YYYY-MM-DD hh:mm.", constraints=(TIME,)),
        "reservations": listing(
            "What is reserved.",
            required=True,
            items=mapping(
                fields={
                    "resource_type": text(
                        "Instances or hosts.",
                        required=True,
                        constraints=(one_of("virtual:instance", "physical:host"),),
                    ),
                    "min": integer("Least number of hosts.", constraints=(between(1),)),
                    "max": integer("Greatest number of hosts.", constraints=(between(1),)),
                    "hypervisor_properties": text("What hypervisors must have."),
                    "resource_properties": text("What hosts must have."),
                    "before_end": text(
                        "What to do before its end.", default="default", constraints=(one_of("default", "snapshot"),)
                    ),
                    "amount": _count("How many instances."),
                    "vcpus": _count("Processors of an instance."),
                    "memory_mb": _count("Memory of an instance in MiB."),
                    "disk_gb": _count("Disk of an instance in GiB."),
                    "affinity": boolean("Have the instances on one host.", default=False),
                }
            ),
        ),
        "events": listing(
            "Events of the lease.",
            default=[],
            items=mapping(
                fields={
                    "event_type": text("Type of the event.", required=True),
                    "time": text("When, as YYYY-MM-DD hh:mm.", required=True),
                }
            ),
        ),
    }
    attributes = {
        "name": Attribute("Name of the lease."),
        "start_date": Attribute("When it begins."),
        "end_date": Attribute("When it ends."),
        "created_at": Attribute("When it was created."),
        "updated_at": Attribute("When it was changed."),
        "status": Attribute("Status of the lease."),
        "degraded": Attribute("Whether it has less than was requested.", ValueType.BOOLEAN),
        "user_id": Attribute("User that owns it."),
        "project_id": Attribute("Project that owns it."),
        "trust_id": Attribute("Trust of its owner."),
        "reservations": Attribute("What is reserved.", ValueType.LIST),
        "events": Attribute("Events of the lease.", ValueType.LIST),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object; each reservation without the fields of the other resource type."""
        spec = super().spec(values, physical_name)
        reservations = []
        for reservation in spec["reservations"]:
            excluded = OF_AN_INSTANCE if reservation["resource_type"] == "physical:host" else OF_A_HOST
            reservations.append(payload({key: value for key, value in reservation.items() if key not in excluded}))
        return {**spec, "reservations": reservations}


TYPES: list[type[ResourceType]] = [Host, Lease]
