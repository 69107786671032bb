"""Stacks for tests that take and restore snapshots of them."""

from typing import Any

from sqlalchemy import select

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.store import schema
from homeostat.store.stacks import snapshots
from tests.component.running import Service, double, server, volume

SLOW = CloudBehaviour(snapshot_s=5.0, build_s=1.0, delete_s=1.0)
WEB = {"web": server(), "disk": volume(), "other": double()}


def stack_of(
    behaviour: CloudBehaviour | None = None, resources: dict[str, Any] = WEB, **options: Any
) -> tuple[Service, str]:
    service = Service(behaviour)
    stack_id = service.create(resources, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def snapshot(service: Service, stack_id: str, id: str) -> Any:
    with service.db.read() as tx:
        return snapshots.get(tx, stack_id, id)


def take_snapshot(service: Service, stack_id: str, name: str | None = None) -> str:
    """A complete snapshot; its id."""
    id = str(service.snapshots.take(stack_id, name).id)
    service.work()
    service.rest()
    assert snapshot(service, stack_id, id).status == "COMPLETE", snapshot(service, stack_id, id).reason
    return id


def restore(service: Service, stack_id: str, id: str) -> None:
    service.snapshots.restore(stack_id, id)
    service.work()
    service.rest()
    assert service.state(stack_id) == "RESTORE_COMPLETE", service.stack(stack_id).reason


def copy_of(service: Service, stack_id: str, id: str, *path: str) -> str:
    """Id of the cloud's snapshot of a resource: names of nested stacks, then its own."""
    entry = {"resources": snapshot(service, stack_id, id).data["resources"]}
    for name in path:
        entry = entry["resources"][name]
    (found,) = entry["resource_data"].values()
    return str(found)


def orphans(service: Service) -> list[str]:
    with service.db.read() as tx:
        return list(tx.execute(select(schema.orphan.c.token)).scalars())


def sweep(service: Service) -> None:
    """Until nothing is looked for any more that was given up."""
    for _ in range(200):
        if not orphans(service):
            return
        service.live(5.0)
    raise AssertionError(f"still looked for: {orphans(service)}")


def object_of(service: Service, stack_id: str, name: str) -> dict[str, Any]:
    return service.cloud.things()[service.row(stack_id, name).handle]
