"""What one thing at a time can hold, in clouds: a server lets go of its interfaces by an update, and gets them back."""

from typing import Any

from tests.contract.test_cloud_servers import subject
from tests.contract.test_clouds import CASES, Subject, others, present

from homeostat.clouds.port import Change, Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation

__all__ = ["others", "subject"]  # fixtures

NONE: list[dict[str, Any]] = [{"allocate_network": "none"}]


def plug(subject: Subject, server: str, networks: list[dict[str, Any]]) -> Any:
    (answer,) = subject.cloud.update("server", [Change(server, {"networks": networks}, ("networks",))])
    return answer


def ports(subject: Subject, server: str) -> list[str]:
    addresses = subject.cloud.observe("server", [server])[0].properties["addresses"]
    return [each["port"] for group in addresses.values() for each in group]


def test_a_server_lets_go_of_its_port_and_gets_it_back(subject: Subject) -> None:
    mine = [{"port": subject["port"]}]
    first = subject.create("server", "first", networks=mine).handle
    present(plug(subject, first, NONE))
    assert ports(subject, first) == []
    second = subject.create("server", "second", networks=mine).handle
    assert ports(subject, second) == [subject["port"]]
    assert isinstance(plug(subject, first, mine), Transient)
    subject.cloud.delete("server", [second])
    subject.until_absent("server", second)
    present(plug(subject, first, mine))
    assert ports(subject, first) == [subject["port"]]


def test_two_servers_swap_their_ports(subject: Subject) -> None:
    (other,) = subject.cloud.create("port", [Creation("other", CASES["port"].spec(subject))])
    on = {"a": subject["port"], "b": present(other).handle}
    made = {name: subject.create("server", name, networks=[{"port": port}]).handle for name, port in on.items()}
    wanted = {made["a"]: on["b"], made["b"]: on["a"]}
    for _ in range(2):
        answers = [plug(subject, server, [{"port": port}]) for server, port in wanted.items()]
    assert all(isinstance(each, Observation) for each in answers)
    assert {server: ports(subject, server) for server in wanted} == {made: [port] for made, port in wanted.items()}
