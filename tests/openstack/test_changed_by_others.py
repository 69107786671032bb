"""Attributes that another resource changes, on a real OpenStack: right at once, for outputs and for who reads them.

Of several servers at once, which are looked at by one list of what has changed, and of a single one.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack import server_looks
from tests.openstack import test_servers as servers
from tests.openstack.lives import make, remove
from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.serving import Served, Wire, serving
from tests.openstack.test_servers import Server, World

world = servers.world
MARGIN_S = 4.0

LOOK_S = 600.0
"""No look comes by chance in the meantime."""


@pytest.fixture(scope="module")
def served(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(project, tmp_path_factory.mktemp("service") / "state") as found:
        yield found


def of(name: str) -> Wire:
    return {"get_resource": name}


def attr(name: str, *path: Any) -> Wire:
    return {"get_attr": [name, *path]}


def thing(kind: str, *after: str, **properties: Any) -> Wire:
    return {"type": kind, "properties": properties, "depends_on": list(after)}


def _shown(at: str) -> Wire:
    return {
        "volume": attr(f"volume{at}", "show", "status"),
        "attachments": attr(f"volume{at}", "attachments_list"),
        "leads to": attr(f"floating{at}", "port_id"),
        "device": attr(f"port{at}", "device_id"),
        "addresses": attr(f"server{at}", "addresses", "changed-net"),
        "disks": attr(f"server{at}", "show", "volumes"),
    }


NETWORK = {
    "net": thing("OS::Neutron::Net", name="changed-net"),
    "subnet": thing("OS::Neutron::Subnet", network=of("net"), cidr="10.75.0.0/24"),
    "router": thing("OS::Neutron::Router", external_gateway_info={"network": "public"}),
    "way": thing("OS::Neutron::RouterInterface", router=of("router"), subnet=of("subnet")),
}


def _one(at: str) -> dict[str, Wire]:
    """A server with a port, and a volume and a floating address that are not its own yet."""
    return {
        f"port{at}": thing("OS::Neutron::Port", "subnet", network=of("net")),
        f"server{at}": thing("OS::Nova::Server", image="mini", flavor="m1.tiny", networks=[{"port": of(f"port{at}")}]),
        f"volume{at}": thing("OS::Cinder::Volume", size=1),
        f"floating{at}": thing("OS::Neutron::FloatingIP", "way", floating_network="public"),
    }


def _bound(at: str) -> dict[str, Wire]:
    """What changes these, and who reads them then."""
    server = of(f"server{at}")
    return {
        f"attachment{at}": thing("OS::Cinder::VolumeAttachment", instance_uuid=server, volume_id=of(f"volume{at}")),
        f"association{at}": thing(
            "OS::Neutron::FloatingIPAssociation",
            f"server{at}",
            floatingip_id=of(f"floating{at}"),
            port_id=of(f"port{at}"),
        ),
        f"reader{at}": thing("OS::Heat::Value", f"attachment{at}", f"association{at}", type="json", value=_shown(at)),
    }


def _whole(resources: Wire, **read: Any) -> Wire:
    return {
        "heat_template_version": "wallaby",
        "resources": resources,
        "outputs": {name: {"value": value} for name, value in read.items()},
    }


def _checked(served: Served, name: str, ats: tuple[str, ...], *, bound: bool) -> None:
    """Assert that outputs, and who reads what was changed, show what is so now."""
    handles, outputs = served.handles(name), served.stack(name)["outputs"]
    values = {each["output_key"]: each["output_value"] for each in outputs}
    for at in ats:
        looks = [values[f"at{at}"]] + ([values[f"read{at}"]] if bound else [])
        for found in looks:
            server, volume, port = (handles[f"{each}{at}"] for each in ("server", "volume", "port"))
            assert found["volume"] == ("in-use" if bound else "available")
            assert [each["server_id"] for each in found["attachments"]] == ([server] if bound else [])
            assert (found["leads to"] or None) == (port if bound else None)
            assert found["device"] == server
            kinds = [each["OS-EXT-IPS:type"] for each in found["addresses"]]
            assert kinds == (["fixed", "floating"] if bound else ["fixed"]), found["addresses"]
            assert [each["id"] for each in found["disks"]] == ([volume] if bound else [])


@pytest.mark.parametrize("ats", [("1",), ("1", "2", "3")], ids=["one", "three"])
def test_what_another_resource_changes_is_right_at_once(served: Served, ats: tuple[str, ...]) -> None:
    name = f"changed-{len(ats)}"
    ones = {**NETWORK, **{key: each for at in ats for key, each in _one(at).items()}}
    all_of_it = {**ones, **{key: each for at in ats for key, each in _bound(at).items()}}
    plain = {f"at{at}": _shown(at) for at in ats}
    read = {f"read{at}": attr(f"reader{at}", "value") for at in ats}
    for verb, resources, bound in (("POST", all_of_it, True), ("PUT", ones, False), ("PUT", all_of_it, True)):
        body = _whole(resources, **plain, **(read if bound else {}))
        path = "stacks" if verb == "POST" else served.path(name)
        more = {"stack_name": name} if verb == "POST" else {}
        answer = served.http.request(verb, path, json={"template": body, **more})
        assert answer.status_code < 300, answer.text
        found = served.at_rest(name)
        assert found["stack_status"].endswith("_COMPLETE"), served.failures(name)
        if verb == "POST":
            served.switch(name, observe_interval=LOOK_S)
        _checked(served, name, ats, bound=bound)
    id = served.stack(name)["id"]
    served.delete(name)
    assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)


@pytest.fixture(scope="module")
def outside(world: World) -> Iterator[str]:
    """The id of the network outside, to which the servers' one has a router."""
    network = world.user.network
    public = network.find_network("public", ignore_missing=False).id
    router = network.create_router(external_gateway_info={"network_id": public}).id
    network.add_interface_to_router(router, subnet=world.subnet)
    yield public
    network.remove_interface_from_router(router, subnet=world.subnet)
    network.delete_router(router)


def test_many_servers_are_seen_with_what_others_changed_of_them(
    world: World, outside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at many lists what has changed: these were at rest for longer than changes are asked for again."""
    monkeypatch.setattr(server_looks, "MARGIN_S", MARGIN_S)
    pair = [Server(world, world.spec()).built() for _ in range(2)]
    handles = [each.handle for each in pair]
    port = next(world.user.network.ports(device_id=handles[0])).id
    volume = make(world.cloud, "OS::Cinder::Volume", {"size": 1})

    def rested() -> None:
        def ask() -> bool:
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - MARGIN_S - 1))
            return not [*world.user.compute.servers(changes_since=since)]

        eventually(ask, "the servers to have been at rest for a while")
        world.cloud.observe("server", handles)

    def seen() -> tuple[list[str], list[str]]:
        found = world.cloud.observe("server", handles)[0].properties
        addresses = [each["type"] for group in found["addresses"].values() for each in group]
        return [each["id"] for each in found["volumes"]], addresses

    rested()
    assert seen() == ([], ["fixed"])
    of = {"instance_uuid": handles[0], "volume_id": volume}
    attachment = make(world.cloud, "OS::Cinder::VolumeAttachment", of)
    assert seen() == ([volume], ["fixed"])
    rested()
    remove(world.cloud, "volume_attachment", attachment)
    assert seen() == ([], ["fixed"])
    rested()
    floating = make(world.cloud, "OS::Neutron::FloatingIP", {"floating_network": outside, "port_id": port})
    assert seen() == ([], ["fixed", "floating"])
    rested()
    remove(world.cloud, "floating_ip", floating)
    assert seen() == ([], ["fixed"])
    for each in pair:
        each.delete()
    remove(world.cloud, "volume", volume)
