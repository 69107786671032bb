"""Rollouts to servers behind load balancers: a member is a nested stack, users know the server in it (ADR 0064)."""

from typing import Any

import pytest

from homeostat.builtin.group_metadata import VirtualLocation, instance_metadata
from homeostat.builtin.signals import metadata_of
from homeostat.store.builtin import records
from tests.component.running import PROJECT, Service, condition, handle
from tests.component.test_scaling_balancers import balanced, elb, everywhere, places


def fleet(value: str) -> dict[str, Any]:
    found = balanced(2, ["elb"], elb=elb((80, 8080)))
    found["group"]["metadata"] = {"v": value}
    found["group"]["properties"]["MetadataUpdatePattern"] = "rolling"
    return {**found, "handle": handle(), "wait": {**condition(), "depends_on": ["group"]}}


class Fleet(Service):
    """Two servers behind a load balancer, at rest."""

    def __init__(self) -> None:
        super().__init__()
        self.id = self.begin(fleet("1"))
        self.live(20)
        self.signal(self.id, "handle")
        self.rest()
        assert self.state(self.id) == "CREATE_COMPLETE"
        self.update(self.id, fleet("2"))
        self.live(1)

    def in_order(self) -> list[str]:
        """Ids of the servers, by the numbers of the members in which they are."""
        rows = self.rows(self.row(self.id, "group").handle)
        return [self.row(row.handle, "server").handle for row in sorted(rows, key=lambda row: int(row.name))]

    def own(self) -> str:
        """What the servers have as part of their own metadata."""
        with self.db.read() as tx:
            owners = [records.owners_of(tx, [each])[0] for each in self.in_order()]
            return "".join(metadata_of(tx, PROJECT, each, each.parent_key)["v"] for each in owners)

    def at_their_places(self) -> str:
        """What they have at their virtual locations."""
        with self.db.read() as tx:
            found = [instance_metadata(tx, self.id, VirtualLocation("group", each)) for each in self.in_order()]
        return "".join(str(each and each["v"]) for each in found)

    def report(self, number: int, status: str = "SUCCESS") -> None:
        body = {"data": self.in_order()[number], "status": status, "reason": "said so"}
        self.signal(self.id, "handle", body)
        self.live(0.1)


@pytest.mark.shows("RU5")
def test_they_read_the_new_metadata_and_report_by_their_own_ids() -> None:
    service = Fleet()
    assert (service.own(), service.at_their_places()) == ("21", "21")
    service.report(0)
    assert (service.own(), service.at_their_places()) == ("22", "22")
    service.report(1)
    service.rest()
    assert (service.own(), service.state(service.id)) == ("22", "UPDATE_COMPLETE")
    assert places(service) == everywhere(service, 8080), "all are in the pool as before"


def test_the_failure_of_one_brings_all_back() -> None:
    service = Fleet()
    service.report(0)
    service.report(1, "FAILURE")
    assert (service.own(), service.at_their_places()) == ("11", "11")
    service.rest()
    assert service.state(service.id) == "UPDATE_FAILED"


def test_a_server_that_has_the_old_metadata_is_no_part_of_the_rollout() -> None:
    service = Fleet()
    service.report(1, "FAILURE")
    assert service.own() == "21"
