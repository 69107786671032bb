"""Clusters of containers, as a member of a project asks Magnum for them."""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from openstack.connection import Connection
from openstack.exceptions import NotFoundException

from tests.customers.guests import Guests
from tests.openstack import projects
from tests.openstack.running import OpenStack, eventually
from tests.waiting import until

MICROVERSION = "1.10"
SETTLES_S = 900.0
LOOK_S = 1.0
"""Between two looks, which cost Magnum and the service more than what they look for takes."""
LABELS = {"etcd_volume_size": "1"}


def rest(_: float) -> None:
    time.sleep(LOOK_S)


@dataclass(slots=True)
class Cluster:
    """user — has asked for it."""

    user: Connection
    id: str
    guests: Guests | None = None

    @property
    def _api(self) -> Any:
        return self.user.container_infrastructure_management

    def seen(self) -> dict[str, Any]:
        return dict(_well(self._api.get(f"/clusters/{self.id}", microversion=MICROVERSION)))

    def settles(self, action: str) -> dict[str, Any]:
        """It, once an action has ended well. Meanwhile its guests report their deployments."""

        def look() -> dict[str, Any] | None:
            found = self.seen()
            self._report(found)
            status = found["status"]
            assert not status.endswith("_FAILED"), f"{found['status_reason']} {found['faults']} {self._failures()}"
            return found if status == f"{action}_COMPLETE" else None

        return until(look, f"the cluster to {action}", rest, SETTLES_S)

    def report(self) -> None:
        """Let its guests report their deployments, once there is something of it."""
        answer = self._api.get(f"/clusters/{self.id}", microversion=MICROVERSION)
        if answer.status_code == 200:
            self._report(dict(answer.json()))

    def resize(self, nodes: int, *to_remove: str) -> None:
        """to_remove — ids of servers."""
        body = {"node_count": nodes, "nodes_to_remove": list(to_remove)}
        _well(self._api.post(f"/clusters/{self.id}/actions/resize", json=body, microversion=MICROVERSION))
        self._begins()

    def rotate_certificates(self) -> None:
        _well(self._api.patch(f"/certificates/{self.id}", microversion=MICROVERSION))
        self._begins()

    def _begins(self) -> None:
        """Wait until Magnum's conductor has taken up what was asked for: until then all is as it was."""
        eventually(lambda: self.seen()["status"] == "UPDATE_IN_PROGRESS", "the update to begin", SETTLES_S)

    def certificate(self) -> str:
        return str(_well(self._api.get(f"/certificates/{self.id}", microversion=MICROVERSION))["pem"])

    def delete(self) -> None:
        """Returns when it is gone."""
        with contextlib.suppress(NotFoundException):
            self._api.delete_cluster(self.id)

        def is_gone() -> bool:
            answer = self._api.get(f"/clusters/{self.id}", microversion=MICROVERSION)
            if answer.status_code == 404:
                return True
            if answer.status_code == 400:  # Magnum has removed its groups of nodes before it, and cannot show it
                return False
            found = _well(answer)
            assert found["status"] != "DELETE_FAILED", f"{found['status_reason']} {self._failures()}"
            return False

        until(is_gone, "the cluster to be gone", rest, SETTLES_S)

    def servers(self, part: str) -> dict[str, str]:
        """Id of each server of its stack -> its name. part — of the names: master or node."""
        stack = self.stack()["stack_name"]
        return {each.id: each.name for each in self.user.compute.servers() if each.name.startswith(f"{stack}-{part}-")}

    def stack(self) -> dict[str, Any]:
        answer = self._orchestration.get(f"/stacks/{self.seen()['stack_id']}")
        return dict(_well(answer)["stack"])

    @property
    def _orchestration(self) -> Any:
        return self.user.orchestration

    def _report(self, found: dict[str, Any]) -> None:
        if self.guests is None and found.get("stack_id"):
            self.guests = Guests(self.user, found["stack_id"])
        if self.guests is not None:
            self.guests.report()

    def _failures(self) -> list[str]:
        if self.guests is None:
            return []
        answer = self._orchestration.get(f"/stacks/{self.guests.stack_id}/events", params={"nested_depth": 5})
        found = answer.json().get("events", [])
        return [
            f"{each['resource_name']}: {each['resource_status_reason']}"
            for each in found
            if each["resource_status"].endswith("_FAILED")
        ]


@dataclass(frozen=True, slots=True)
class Owner:
    """An ordinary member of a project of the test's own.

    image, key — id and name of what its clusters are made from.
    """

    project: projects.Project
    user: Connection
    image: str
    key: str


@contextlib.contextmanager
def owner(cloud: OpenStack) -> Iterator[Owner]:
    """In the end it is removed, with all that it has."""
    project = projects.create(cloud)
    try:
        with contextlib.closing(project.connection()) as user, image(user) as image_id:
            key: Any = user.compute.create_keypair(name="magnum")
            yield Owner(project, user, image_id, key.name)
    finally:
        projects.remove(project)


@contextlib.contextmanager
def image(user: Connection) -> Iterator[str]:
    """The id of one that Magnum takes for Fedora CoreOS."""
    made = user.image.create_image(
        name=f"fedora-coreos-{uuid.uuid4().hex[:8]}",
        data=b"\0" * 1024,
        disk_format="raw",
        container_format="bare",
        allow_duplicates=True,
        os_distro="fedora-coreos",
    )
    try:
        yield made.id
    finally:
        user.image.delete_image(made.id)


@contextlib.contextmanager
def template(user: Connection, image_id: str, key: str, **more: object) -> Iterator[str]:
    """The id of a cluster template with volumes for Docker. key — name of a key pair. more — of its attributes."""
    api: Any = user.container_infrastructure_management
    made = api.create_cluster_template(
        name="k8s",
        coe="kubernetes",
        image_id=image_id,
        keypair_id=key,
        external_network_id="public",
        flavor_id="m1.medium",
        master_flavor_id="m1.medium",
        network_driver="calico",
        docker_volume_size=1,
        labels=LABELS,
        **more,
    )
    try:
        yield made.uuid
    finally:
        api.delete_cluster_template(made.uuid)


@contextlib.contextmanager
def cluster(user: Connection, template_id: str, name: str, nodes: int) -> Iterator[Cluster]:
    """One that begins to be made; in the end it is deleted."""
    api: Any = user.container_infrastructure_management
    body = {"name": name, "cluster_template_id": template_id, "node_count": nodes, "master_count": 1}
    made = Cluster(user, _well(api.post("/clusters", json=body, microversion=MICROVERSION))["uuid"])
    try:
        yield made
    finally:
        made.delete()


def _well(answer: Any) -> dict[str, Any]:
    assert answer.status_code < 300, f"{answer.status_code} {answer.text}"
    return dict(json.loads(answer.text))
