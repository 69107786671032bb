"""What another server is made with so that it keeps ports, addresses and volumes of the one before."""

from typing import Any

import pytest

from homeostat.model.health_policy import Preserved
from homeostat.resources.families.server_identity import identity

PORTS, ADDRESSES, VOLUMES = Preserved.PORTS, Preserved.ADDRESSES, Preserved.VOLUMES


def card(port: str, addr: str, network: str = "", **more: Any) -> dict[str, Any]:
    return {"addr": addr, "version": 4, "port": port, "network": network, **more}


ONE = {"private": [card("p1", "10.0.0.5", "net-1")]}
TWO = {**ONE, "data": [card("p2", "10.1.0.7", "net-2")]}
FLOATING = {"private": [card("p1", "10.0.0.5"), card("p1", "172.24.4.9", type="floating")]}


@pytest.mark.parametrize(
    ("networks", "addresses", "wanted", "expected"),
    [
        ([{"network": "private"}], ONE, {ADDRESSES}, [{"network": "private", "fixed_ip": "10.0.0.5"}]),
        ([{"network": "net-1"}], ONE, {ADDRESSES}, [{"network": "net-1", "fixed_ip": "10.0.0.5"}]),
        ([{"subnet": "s"}], ONE, {ADDRESSES}, [{"subnet": "s", "fixed_ip": "10.0.0.5"}]),
        ([], ONE, {ADDRESSES}, [{"network": "net-1", "fixed_ip": "10.0.0.5"}]),
        ([{"allocate_network": "auto"}], ONE, {ADDRESSES}, [{"network": "net-1", "fixed_ip": "10.0.0.5"}]),
        ([{"allocate_network": "none"}], ONE, {PORTS}, [{"port": "p1"}]),
        ([{"network": "private"}], FLOATING, {ADDRESSES}, [{"network": "private", "fixed_ip": "10.0.0.5"}]),
        (
            [{"network": "data"}, {"network": "private"}],
            TWO,
            {ADDRESSES},
            [{"network": "data", "fixed_ip": "10.1.0.7"}, {"network": "private", "fixed_ip": "10.0.0.5"}],
        ),
        ([{"network": "private"}], TWO, {PORTS}, [{"network": "private"}, {"port": "p2"}]),
        (
            [{"network": "private"}],
            TWO,
            {PORTS, ADDRESSES},
            [{"network": "private", "fixed_ip": "10.0.0.5"}, {"port": "p2"}],
        ),
    ],
)
def test_networks(networks: Any, addresses: Any, wanted: set[Preserved], expected: Any) -> None:
    assert identity({"networks": networks}, {"addresses": addresses}, wanted, ()) == {"networks": expected}


@pytest.mark.parametrize(
    ("networks", "addresses", "wanted"),
    [
        ([{"port": "p1"}], ONE, {PORTS, ADDRESSES}),
        ([{"subnet": "s"}, {"subnet": "t"}], TWO, {ADDRESSES}),
        ([{"subnet": "s"}, {"subnet": "t"}], TWO, {PORTS}),
        ([{"allocate_network": "none"}], ONE, {ADDRESSES}),
        ([{"network": "private"}], {}, {PORTS, ADDRESSES}),
        ([{"network": "private"}], ONE, {VOLUMES}),
    ],
)
def test_networks_that_stay_as_they_are(networks: Any, addresses: Any, wanted: set[Preserved]) -> None:
    assert identity({"networks": networks}, {"addresses": addresses}, wanted, ()) == {}


BOOT = {"image": "i", "boot_index": 0, "volume_size": 9}


@pytest.mark.parametrize(
    ("devices", "volumes", "managed", "expected"),
    [
        ([], ["v1"], (), [{"volume_id": "v1", "boot_index": -1}]),
        ([{"volume_id": "v0"}], ["v0", "v1"], (), [{"volume_id": "v0"}, {"volume_id": "v1", "boot_index": -1}]),
        ([BOOT], ["v1"], (), [{"volume_id": "v1", "boot_index": 0}]),
        ([{**BOOT, "delete_on_termination": True}], ["v1"], (), None),
        ([], ["v1"], ("v1",), {}),
        ([{"volume_id": "v0"}], ["v0"], (), {}),
        ([BOOT], ["v1", "v2"], (), {}),
        ([], [], (), {}),
    ],
)
def test_volumes(devices: Any, volumes: list[str], managed: Any, expected: Any) -> None:
    seen = {"volumes": [{"id": each, "delete_on_termination": False} for each in volumes]}
    found = identity({"block_device_mapping_v2": devices}, seen, {VOLUMES}, managed)
    if expected is None:  # beside a boot volume that goes with the server
        expected = [*devices, {"volume_id": "v1", "boot_index": -1}]
    assert found == ({"block_device_mapping_v2": expected} if expected else {})


def test_a_volume_that_goes_with_its_server_is_not_kept() -> None:
    seen = {"volumes": [{"id": "v1", "delete_on_termination": True}]}
    assert identity({}, seen, {VOLUMES}, ()) == {}
