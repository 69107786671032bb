"""Objects of further simulated services: images, users, secrets, alarms, DNS, workflows and more."""

from collections.abc import Callable, Mapping
from typing import Any

from homeostat.clouds.port import Operation
from homeostat.model.errors import HomeostatError, Terminal, Transient

Fields = dict[str, Any]

READY_STATUS: Mapping[str, str] = {
    "image": "active",
    "secret": "active",
    "secret_order": "active",
    "secret_container": "active",
    "dns_zone": "active",
    "dns_record_set": "active",
    "external_resource": "success",
    "share": "available",
    "container_cluster": "create_complete",
    "database_instance": "active",
    "database_cluster": "active",
    "app_container": "running",
    "reservable_host": "up",
    "lease": "pending",
}
BUILDING_STATUS: Mapping[str, str] = {
    "image": "importing",
    "secret_order": "pending",
    "dns_zone": "pending",
    "dns_record_set": "pending",
    "external_resource": "running",
    "share": "creating",
    "container_cluster": "create_in_progress",
    "database_instance": "build",
    "database_cluster": "build",
    "app_container": "creating",
}
SOME_DAY = "2030-01-01T00:00:00Z"


def refusal(properties: Fields) -> str:
    """Return the reason to refuse the deletion of an object; "" if there is none."""
    if properties.get("object_count") and not properties.get("purge"):
        return f"Deleting non-empty container ({properties['id']}) when PurgeOnDelete is False is not supported"
    return f"Image {properties['id']} is protected and cannot be deleted" if properties.get("protected") else ""


def _url(service: str, *path: object) -> str:
    return "/".join((f"http://{service}.simulated", "v1", *map(str, path)))


def _addresses(count: int, number: int) -> list[str]:
    return [f"10.{number % 250}.{index // 250 % 250}.{index % 250 + 1}" for index in range(count)]


def _container(spec: Fields, number: int) -> Fields:
    headers = {"x-container-object-count": "0", "x-container-bytes-used": "0"}
    headers |= {f"x-container-meta-{key}".lower(): value for key, value in (spec.get("metadata") or {}).items()}
    url = _url("objects", "AUTH_project", spec["name"])
    return {"url": url, "object_count": 0, "bytes_used": 0, "headers": headers}


def _order(spec: Fields, number: int) -> Fields:
    order = {"order_ref": _url("keys", "orders", number)}
    if spec["type"] == "key":
        return {**order, "secret_ref": _url("keys", "secrets", number)}
    order = {**order, "container_ref": _url("keys", "containers", number), "private_key": f"private {number}"}
    if spec["type"] == "asymmetric":
        return {**order, "public_key": f"public {number}"}
    return {**order, "certificate": f"certificate {number}", "intermediates": f"intermediates {number}"}


def _share(spec: Fields, number: int) -> Fields:
    return {
        "availability_zone": "nova",
        "host": "storage@simulated#pool",
        "export_locations": [f"{_addresses(1, number)[0]}:/shares/share-{number}"],
        "share_server_id": f"share-server-{number}",
        "created_at": SOME_DAY,
        "project_id": "project",
    }


def _container_cluster(spec: Fields, number: int) -> Fields:
    masters, nodes = spec.get("master_count") or 1, spec.get("node_count") or 1
    addresses = _addresses(masters + nodes, number)
    return {
        "api_address": f"https://{addresses[0]}:6443",
        "stack_id": f"stack-{number}",
        "coe_version": "v1.30.0",
        "container_version": "1.7.0",
        "master_addresses": addresses[:masters],
        "node_addresses": addresses[masters:],
        "status_reason": "Stack CREATE completed successfully",
        "discovery_url": spec.get("discovery_url") or f"https://discovery.simulated/{number}",
    }


def _database_cluster(spec: Fields, number: int) -> Fields:
    wanted = spec.get("instances") or []
    instances = [{**entry, "id": f"instance-{number}-{i}", "status": "active"} for i, entry in enumerate(wanted)]
    return {"instances": instances, "ip": _addresses(len(instances), number)}


def _signed_queue_url(spec: Fields, number: int) -> Fields:
    return {
        "signature": f"{number:064x}",
        "expires": SOME_DAY,
        "paths": spec.get("paths") or [f"/v2/queues/{spec['queue']}/messages"],
        "methods": spec.get("methods") or ["GET"],
        "project": "project",
    }


def _app_container(spec: Fields, number: int) -> Fields:
    (address,) = _addresses(1, number)
    networks = [entry.get("network") or entry.get("port") for entry in spec.get("networks") or ()] or ["default"]
    return {"addresses": {str(name): [{"addr": address, "version": 4, "port": f"port-{number}"}] for name in networks}}


def _host(spec: Fields, number: int) -> Fields:
    return {
        "hypervisor_hostname": spec["name"],
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8002002,
        "vcpus": 16,
        "cpu_info": {"arch": "x86_64", "topology": {"cores": 8, "threads": 2, "sockets": 1}},
        "memory_mb": 65536,
        "local_gb": 512,
        "service_name": spec["name"],
        "reservable": True,
        "trust_id": f"trust-{number}",
        "created_at": SOME_DAY,
        "updated_at": None,
    }


def _lease(spec: Fields, number: int) -> Fields:
    reservations = [{**entry, "id": f"{number}-{i}"} for i, entry in enumerate(spec["reservations"])]
    return {
        "reservations": reservations,
        "created_at": SOME_DAY,
        "updated_at": None,
        "degraded": False,
        "user_id": "user",
        "project_id": "project",
        "trust_id": f"trust-{number}",
    }


def _baremetal_port(spec: Fields, number: int) -> Fields:
    usual = {
        "pxe_enabled": True,
        "is_smartnic": False,
        "extra": {},
        "local_link_connection": {},
        "internal_info": {},
    }
    return {name: spec.get(name, value) for name, value in usual.items()}


FIELDS: Mapping[str, Callable[[Fields, int], Fields]] = {
    "container": _container,
    "project": lambda spec, number: {"parent_id": spec.get("parent_id") or spec.get("domain_id"), "is_domain": False},
    "user": lambda spec, number: {"password_expires_at": None},
    "secret": lambda spec, number: {"secret_ref": _url("keys", "secrets", number)},
    "secret_order": _order,
    "secret_container": lambda spec, number: {"container_ref": _url("keys", "containers", number), "consumers": []},
    "alarm": lambda spec, number: {"state": "insufficient data"},
    "dns_zone": lambda spec, number: {"serial": str(1_900_000_000 + number)},
    "workflow": lambda spec, number: {"executions": []},
    "cron_trigger": lambda spec, number: {
        "next_execution_time": "2030-01-01 00:00:00",
        "remaining_executions": spec.get("count"),
    },
    "external_resource": lambda spec, number: {"output": {}},
    "share": _share,
    "share_network": lambda spec, number: {
        "segmentation_id": str(number),
        "cidr": f"10.{number % 250}.0.0/24",
        "ip_version": "4",
        "network_type": "vxlan",
    },
    "container_cluster": _container_cluster,
    "database_instance": lambda spec, number: {
        "hostname": f"database-{number}.simulated",
        "href": _url("databases", "instances", number),
    },
    "database_cluster": _database_cluster,
    "queue": lambda spec, number: {"href": _url("messages", "queues", spec["name"])},
    "signed_queue_url": _signed_queue_url,
    "app_container": _app_container,
    "reservable_host": _host,
    "lease": _lease,
    "baremetal_port": _baremetal_port,
}


def post(queues: dict[str, list[Mapping[str, Any]]], operation: Operation, *, created: bool) -> bool:
    """Post messages to a queue; return whether the queue exists.

    Args:
        queues: Name of a queue -> its messages. A queue that only a message has made can be taken over by a creation.
        created: Whether the queue was created.
    """
    name, arguments = operation.handle, operation.arguments
    if created or arguments.get("make") or name in queues:
        queues.setdefault(name, []).extend(arguments["messages"])
    return name in queues


def run(workflow: Fields, arguments: Mapping[str, Any]) -> HomeostatError | None:
    """Run a workflow once per token; return the reason why it has not succeeded yet.

    Args:
        workflow: The workflow. Its field `ends` is the state of its executions, SUCCESS by default.
    """
    token, name = arguments["token"], workflow["name"]
    known = {execution["id"]: execution for execution in workflow["executions"]}
    started = {"id": token, "workflow_name": name, "input": arguments.get("input"), "state": "RUNNING"}
    execution = known.get(token) or started
    if execution["state"] == "RUNNING":
        execution = {**execution, "state": workflow.get("ends", "SUCCESS")}
    if execution["state"] == "RUNNING" and arguments.get("cancel"):
        execution = {**execution, "state": "CANCELLED"}
    workflow["executions"] = list({**known, token: execution}.values())
    if execution["state"] == "RUNNING":
        return Transient(f"workflow {name} is running")
    return (
        None if execution["state"] == "SUCCESS" else Terminal(f"workflow {name} went to {execution['state'].lower()}")
    )
