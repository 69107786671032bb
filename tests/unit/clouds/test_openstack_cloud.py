"""The cloud port over collections: threads, and what is known of names."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.cloud import KNOWN_MAX, OpenStackCloud
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.service import Service, Wire
from homeostat.clouds.openstack.tokens import Joined
from homeostat.model.errors import Terminal, Transient


class Things(Collection):
    """Things that all exist."""

    kind, service, path = "network", "network", "/networks"
    token = Joined()

    def observe(self, handles: object) -> dict[str, Wire]:
        assert isinstance(handles, list)
        return {each: {"id": each} for each in handles}


class Unfiltered(Collection):
    """Things that only administrators may filter by name, as types of volumes."""

    kind, service, path = "volume_type", "block-storage", "/types"
    token = Joined()

    def get(self, handle: str) -> Wire:
        raise Missing(handle)

    def list(self, **filters: Any) -> Iterator[Wire]:
        if filters:
            raise Terminal("Invalid filters name are found in query options.")
        return iter([{"id": "1", "name": "fast"}, {"id": "2", "name": "slow"}])


class Particular(Unfiltered):
    """Things whose service refuses what can be no id, as that for bare metal."""

    kind = "baremetal_node"

    def get(self, handle: str) -> Wire:
        raise Terminal("Expected UUID or name for node")


def service(_: str) -> Service:
    raise AssertionError("nothing is asked for")


@pytest.fixture
def cloud() -> Iterator[OpenStackCloud]:
    with ThreadPoolExecutor(2) as pool:
        yield OpenStackCloud([Things, Unfiltered, Particular], service, pool)


@pytest.mark.timeout(20)
def test_side_by_side_within_side_by_side_waits_for_no_thread(cloud: OpenStackCloud) -> None:
    def outer(row: int) -> list[int]:
        return cloud.side_by_side(lambda column: 10 * row + column, [1, 2, 3])

    assert cloud.side_by_side(outer, [1, 2, 3, 4]) == [
        [10 * row + column for column in (1, 2, 3)] for row in range(1, 5)
    ]


def test_a_look_at_many_leaves_the_names_known(cloud: OpenStackCloud) -> None:
    assert cloud.known("flavor", "small", lambda: "id") == "id"
    cloud.observe("network", [str(number) for number in range(KNOWN_MAX + 1)])
    assert cloud.known("flavor", "small", lambda: None) == "id"
    assert cloud.known("network", str(KNOWN_MAX), lambda: None) == str(KNOWN_MAX)


def test_an_error_reaches_everything_that_asks_and_is_not_kept(cloud: OpenStackCloud) -> None:
    def away() -> str:
        raise Transient("away")

    with pytest.raises(Transient):
        cloud.known("flavor", "small", away)
    assert cloud.known("flavor", "small", lambda: "id") == "id"


def test_a_list_that_users_may_not_filter_is_searched(cloud: OpenStackCloud) -> None:
    assert cloud.resolve("volume_type", ["slow", "none"]) == ["2", None]


def test_the_list_is_searched_for_what_can_be_no_id(cloud: OpenStackCloud) -> None:
    assert cloud.resolve("baremetal_node", ["slow", "no such name"]) == ["2", None]
