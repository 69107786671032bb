"""Fills a new cloud: python -m minios.provision PHASE JSON.

PHASE catalog: service accounts and endpoints (only Keystone runs yet).
PHASE resources: the demo project's flavors, image and networks; waits for all agents.
Both may be repeated.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import openstack
from openstack.connection import Connection

FLAVORS = (("m1.tiny", 1, 64, 1), ("m1.small", 1, 512, 5), ("m1.medium", 2, 2048, 10), ("m1.large", 4, 8192, 40))
"""Name, CPUs, MiB of memory, GiB of disk."""
PATIENCE_S = 180.0
LOOK_S = 0.5


def make_catalog(cloud: Connection, settings: dict[str, Any]) -> None:
    identity: Any = cloud.identity
    password = settings["password"]
    ours, demo = (
        identity.find_project(name) or identity.create_project(name=name, domain_id="default")
        for name in ("service", "demo")
    )
    for role in settings["roles"]:
        if not identity.find_role(role):
            identity.create_role(name=role)
    _make_user(identity, "demo", password, demo, ["member", "reader", *settings["roles"]])
    for kind, (url, name) in settings["endpoints"].items():
        _make_user(identity, name, password, ours, ["admin", "service"])
        service = identity.find_service(name) or identity.create_service(name=name, type=kind)
        present = {each.interface for each in identity.endpoints(service_id=service.id)}
        for interface in {"public", "internal"} - present:
            identity.create_endpoint(service_id=service.id, interface=interface, region_id="RegionOne", url=url)


def _make_user(identity: Any, name: str, password: str, project: Any, roles: Sequence[str]) -> None:
    user = identity.find_user(name) or identity.create_user(name=name, password=password, domain_id="default")
    for role in roles:
        identity.assign_project_role_to_user(project, user, identity.find_role(role))


def make_resources(cloud: Connection, settings: dict[str, Any]) -> None:
    for name, vcpus, ram, disk in FLAVORS:
        if not cloud.compute.find_flavor(name):
            cloud.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    if not cloud.image.find_image("mini"):
        cloud.image.create_image(
            name="mini",
            data=b"\0" * 1024,
            disk_format="raw",
            container_format="bare",
            visibility="public",
            allow_duplicates=True,
        )
    _make_networks(cloud)
    if "manila" in settings["optional"]:
        _make_share_type(cloud)
    if "blazar" in settings["optional"] and not cloud.compute.find_aggregate("freepool"):
        cloud.compute.create_aggregate(name="freepool")
    if "ironic" in settings["optional"]:
        _wait("Ironic's conductor up", lambda: _ironic_is_up(cloud))
    _wait("Nova's services up", lambda: _nova_is_up(cloud, settings["computes"]))
    _wait("compute hosts mapped", lambda: _are_mapped(cloud, settings["computes"]))
    _wait("Cinder's services up", lambda: _cinder_is_up(cloud))


def _make_networks(cloud: Connection) -> None:
    network: Any = cloud.network
    identity: Any = cloud.identity
    demo = identity.find_project("demo", ignore_missing=False)
    public = network.find_network("public")
    if not public:
        public = network.create_network(
            name="public",
            is_router_external=True,
            provider_network_type="flat",
            provider_physical_network="physnet1",
        )
        network.create_subnet(
            network_id=public.id, name="public", ip_version=4, cidr="172.24.0.0/16", is_dhcp_enabled=False
        )
    if not network.find_network("private", project_id=demo.id):
        private = network.create_network(name="private", project_id=demo.id)
        subnet = network.create_subnet(
            network_id=private.id, name="private", ip_version=4, cidr="10.0.0.0/16", project_id=demo.id
        )
        router = network.create_router(
            name="router", project_id=demo.id, external_gateway_info={"network_id": public.id}
        )
        network.add_interface_to_router(router, subnet.id)


def _make_share_type(cloud: Connection) -> None:
    shares = cloud.shared_file_system
    if "default" not in [each["name"] for each in shares.get("/types").json()["share_types"]]:
        kind = {"name": "default", "extra_specs": {"driver_handles_share_servers": False}}
        shares.post("/types", json={"share_type": kind})

    def is_up() -> bool:
        services = shares.get("/services", microversion="2.7").json()["services"]
        return {each["binary"] for each in services if each["state"] == "up"} == {"manila-share", "manila-scheduler"}

    _wait("Manila's services up", is_up)


def _ironic_is_up(cloud: Connection) -> bool:
    """A conductor can make machines once it has stored which hardware it knows. Only the whole system may see that."""
    login = {name: value for name, value in cloud.config.config["auth"].items() if not name.startswith("project")}
    whole = openstack.connect(auth={**login, "system_scope": "all"}, region_name="RegionOne", load_yaml_config=False)
    return "fake-hardware" in {each.name for each in whole.baremetal.drivers()}


def _nova_is_up(cloud: Connection, computes: Sequence[str]) -> bool:
    states = {(each.binary, each.host): each.state for each in cloud.compute.services()}
    wanted = [("nova-conductor", "mini"), ("nova-scheduler", "mini"), *(("nova-compute", host) for host in computes)]
    return all(states.get(each) == "up" for each in wanted)


def _are_mapped(cloud: Connection, computes: Sequence[str]) -> bool:
    """A compute host can be used once Nova has mapped it into its cell."""
    return {each.name for each in cloud.compute.hypervisors()}.issuperset(computes)


def _cinder_is_up(cloud: Connection) -> bool:
    states = {each.binary: each.state for each in cloud.block_storage.services()}
    return (states.get("cinder-volume"), states.get("cinder-scheduler")) == ("up", "up")


def _wait(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not after {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)


PHASES = {"catalog": make_catalog, "resources": make_resources}


def main() -> None:
    phase, settings = sys.argv[1], json.loads(sys.argv[2])
    PHASES[phase](openstack.connect(cloud="minios-admin"), settings)


if __name__ == "__main__":
    main()
