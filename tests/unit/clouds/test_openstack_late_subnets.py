"""Servers that are refused since a port of theirs has no address: the network may get its first subnet yet."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.late_subnets import YOUNG_S, error_of
from homeostat.clouds.openstack.service import Service
from homeostat.model.errors import HomeostatError, Terminal, Transient

BORN = "2026-08-31T12:00:00Z"
BORN_AT = 1788177600.0
OURS, THEIRS = "[homeostat:abcdefghijkl-1]", "by hand"
REFUSED = Terminal("compute: Port p requires a FixedIP in order to be used.")


@dataclass
class Networking:
    """What is there, and what is asked for."""

    port: dict[str, Any]
    network: dict[str, Any]
    put: list[Any] = field(default_factory=list)

    def get(self, path: str) -> dict[str, Any]:
        return {"port": self.port, "network": self.network, "subnet": {"ip_version": 6 if "six" in path else 4}}

    def request(self, method: str, path: str, body: Any, of: str) -> None:
        self.put.append((method, path, body))


def asked(*subnets: str, port: str = OURS, network: str = OURS, age_s: float = 1.0) -> tuple[HomeostatError, list[Any]]:
    world = Networking(
        {"id": "p", "network_id": "n", "fixed_ips": [], "description": port},
        {"id": "n", "subnets": list(subnets), "description": network, "created_at": BORN},
    )
    return error_of(REFUSED, cast(Service, world), lambda: BORN_AT + age_s), world.put


def test_a_young_network_is_waited_for() -> None:
    error, put = asked()
    assert isinstance(error, Transient)
    assert put == []


@pytest.mark.parametrize("case", [{"age_s": YOUNG_S + 1}, {"port": THEIRS}, {"network": THEIRS}])
def test_what_will_not_change_is_refused(case: dict[str, Any]) -> None:
    assert asked(**case) == (REFUSED, [])


def test_a_port_gets_an_address_of_each_version_once_there_are_subnets() -> None:
    error, put = asked("six", "four", "other")
    assert isinstance(error, Transient)
    assert put == [("PUT", "/ports/p", {"port": {"fixed_ips": [{"subnet_id": "four"}, {"subnet_id": "six"}]}})]


def test_other_refusals_are_what_they_are() -> None:
    other = Terminal("compute: no such flavor")
    assert error_of(other, cast(Service, None)) is other
