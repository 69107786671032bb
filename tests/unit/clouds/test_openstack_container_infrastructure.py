"""Container clusters of an OpenStack, whose service answers before it has taken up what was asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from homeostat.clouds.openstack.answers import Missing
from homeostat.clouds.openstack.collection import CloudOfCollections
from homeostat.clouds.openstack.container_infrastructure import Clusters
from homeostat.clouds.openstack.service import LATE_S, Service
from homeostat.model.errors import Uncertain

SPEC = {"name": "k", "cluster_template_id": "t", "keypair": None, "node_count": 2}


class Magnum:
    """A service with clusters that its conductor has taken up, or not yet."""

    def __init__(self, *, prompt: bool) -> None:
        self.prompt = prompt
        self.there: dict[str, dict[str, Any]] = {}
        self.sent: list[tuple[str, str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        found = self.there.get(path.rpartition("/")[2])
        if found is None:
            raise Missing(path)
        return found

    def request(self, method: str, path: str, body: Any = None, of: str = "") -> dict[str, Any]:
        self.sent.append((method, path, body))
        if method == "POST" and self.prompt:
            self.there["u"] = {"uuid": "u", "status": "CREATE_IN_PROGRESS", "node_addresses": [], **body}
        return {"uuid": "u"}


class Site:
    """A cloud with that service alone."""

    collections: Mapping[str, Any] = {}

    def __init__(self, magnum: Magnum) -> None:
        self._magnum = magnum

    def service(self, name: str) -> Service:
        assert name == "container-infrastructure-management"
        return cast(Service, self._magnum)

    def side_by_side(self, act: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [act(each) for each in items]

    def known(self, kind: str, name: str, resolve: Callable[[], str | None]) -> str | None:
        return resolve()


def clusters(magnum: Magnum) -> Clusters:
    return Clusters(cast(CloudOfCollections, Site(magnum)))


def test_a_cluster_carries_its_token_among_the_labels_of_its_template() -> None:
    magnum = Magnum(prompt=True)
    made = clusters(magnum)
    assert made.token.read(made.create("token", SPEC)) == "token"
    ((_, _, body),) = magnum.sent
    assert body["merge_labels"] is True
    assert "keypair" not in body


def test_a_cluster_that_is_not_there_yet_is_looked_for_before_another_one_is_made() -> None:
    with pytest.raises(Uncertain) as raised:
        clusters(Magnum(prompt=False)).create("token", SPEC)
    assert raised.value.late_s == LATE_S


@pytest.mark.parametrize(
    ("status", "count", "addresses", "shown", "reason"),
    [
        ("CREATE_COMPLETE", 2, ["a", "b"], "create_complete", "it is what was asked for"),
        ("CREATE_COMPLETE", 3, ["a", "b"], "update_in_progress", "the number changes before the status does"),
        ("UPDATE_COMPLETE", 1, ["a", "b"], "update_in_progress", "so it does when nodes go"),
        ("UPDATE_FAILED", 3, ["a", "b"], "update_failed", "a failure is shown"),
        ("CREATE_COMPLETE", 2, None, "create_complete", "what was not seen does not differ"),
    ],
)
def test_a_cluster_changes_until_it_has_its_nodes(
    status: str, count: int, addresses: list[str] | None, shown: str, reason: str
) -> None:
    thing = {"uuid": "u", "status": status, "node_count": count, "node_addresses": addresses, "labels": {}}
    assert clusters(Magnum(prompt=True)).object_of(thing)["status"] == shown, reason


def test_only_what_can_change_is_sent_and_the_change_is_not_over() -> None:
    magnum = Magnum(prompt=True)
    made = clusters(magnum)
    made.create("token", SPEC)
    after = made.update("u", {**SPEC, "node_count": 3}, ["node_count", "name"])
    assert magnum.sent[-1] == ("PATCH", "/clusters/u", [{"op": "replace", "path": "/node_count", "value": 3}])
    assert made.object_of(after)["status"] == "update_in_progress"


def test_a_cluster_goes_on_existing_while_it_is_deleted() -> None:
    magnum = Magnum(prompt=True)
    made = clusters(magnum)
    made.create("token", SPEC)
    gone = made.delete("u")
    assert gone is not None
    assert made.object_of(gone)["status"] == "delete_in_progress"


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        ({"status_reason": "Failed to get discovery url", "faults": {}}, "Failed to get discovery url"),
        (
            {
                "status_reason": "default-master failed",
                "faults": {"default-master": "no quota", "default-worker": None},
            },
            "no quota",
        ),
        ({"faults": {"default-master": "no quota", "default-worker": "no quota"}}, "no quota"),
        ({"faults": {"default-master": "no quota", "default-worker": "no host"}}, "no quota; no host"),
        (
            {"status_reason": None, "faults": None, "stack_id": None},
            "Magnum gives no reason for cluster u: it made no stack, so the log of its conductor says why",
        ),
        ({"status_reason": "", "stack_id": "s"}, "Magnum gives no reason for cluster u: its stack is s"),
    ],
)
def test_a_failed_cluster_says_why(shown: dict[str, Any], fault: str) -> None:
    seen = clusters(Magnum(prompt=True)).object_of({"uuid": "u", "status": "CREATE_FAILED", "labels": {}, **shown})
    assert seen["fault"] == fault


def test_why_a_cluster_failed_is_asked_for_where_a_list_leaves_it_out() -> None:
    magnum = Magnum(prompt=True)
    magnum.there["u"] = {"uuid": "u", "status": "CREATE_FAILED", "faults": {"default-worker": "no host"}}
    listed = {"u": {"uuid": "u", "status": "CREATE_FAILED"}, "w": {"uuid": "w", "status": "CREATE_COMPLETE"}}
    assert clusters(magnum).complete(listed) == {"u": magnum.there["u"], "w": listed["w"]}
