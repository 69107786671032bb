"""What notifications of OpenStack's services say, and what is kept of them."""

from typing import Any

import pytest

from homeostat.clouds.openstack import notifications
from homeostat.clouds.openstack.notifications import NotificationConfig, Notifications, notice_of
from homeostat.clouds.port import ChangeNotice
from homeostat.kinds.registry import KINDS
from homeostat.message_bus import shown

VERSIONED = {"nova_object.name": "InstanceActionPayload", "nova_object.data": {"uuid": "s1", "state": "deleted"}}
CASES: list[tuple[str, Any, tuple[str, str] | None]] = [
    ("instance.delete.end", VERSIONED, ("server", "s1")),
    ("instance.delete.start", VERSIONED, None),
    ("instance.create.error", VERSIONED, ("server", "s1")),
    ("instance.update", VERSIONED, ("server", "s1")),
    ("instance.exists", VERSIONED, None),
    ("compute.instance.update", {"instance_id": "s1"}, ("server", "s1")),
    ("keypair.delete.end", {"nova_object.data": {"name": "k", "user_id": "u"}}, ("keypair", "u/k")),
    ("keypair.delete.end", {"tenant_id": "p", "user_id": "u", "key_name": "k"}, ("keypair", "u/k")),
    ("keypair.delete.end", {"key_name": "k"}, None),
    ("servergroup.delete", {"server_group_id": "g"}, ("server_group", "g")),
    ("port.update.end", {"port": {"id": "p1", "status": "DOWN"}}, ("port", "p1")),
    ("port.delete.end", {"port": {}, "port_id": "p1"}, ("port", "p1")),
    ("security_group_rule.delete.end", {"security_group_rule_id": "r"}, ("security_group_rule", "r")),
    ("security_group.update.end", {"security_group": {"id": "g"}}, ("security_group", "g")),
    ("floatingip.update.end", {"floatingip": {"id": "f"}}, ("floating_ip", "f")),
    (
        "router.interface.delete",
        {"router_interface": {"id": "r", "port_id": "p", "subnet_id": "s"}},
        ("router_interface", "p"),
    ),
    ("router.update.end", {"router": {"id": "r"}}, ("router", "r")),
    ("ports.create.end", {"ports": [{"id": "p1"}]}, None),
    ("volume.detach.end", {"volume_id": "v", "snapshot_id": None}, ("volume", "v")),
    ("snapshot.delete.end", {"volume_id": "v", "snapshot_id": "n"}, ("volume_snapshot", "n")),
    ("octavia.loadbalancer.update.end", {"loadbalancer_id": "b"}, ("load_balancer", "b")),
    ("identity.user.created", {"resource_info": "u"}, None),
    ("port.update.end", {"port": None}, None),
    ("port.update.end", ["port"], None),
    ("port.update.end", {"port": {"id": 7}}, None),
]


@pytest.mark.shows("HS24")
@pytest.mark.parametrize(("event_type", "payload", "expected"), CASES)
def test_what_a_notification_says(event_type: str, payload: Any, expected: tuple[str, str] | None) -> None:
    found = notice_of(event_type, payload)
    assert (found and (found.kind, found.handle)) == expected


def test_all_kinds_exist() -> None:
    assert {each.kind for each in notifications.EVENTS} <= KINDS.keys()


def test_where_too_many_notices_wait_the_oldest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAITING_MAX", 2)
    monkeypatch.setattr(Notifications, "_start", lambda self: None)
    heard = Notifications(NotificationConfig(("fake://",)))
    for n in range(4):
        heard.heard("port.update.end", {"port": {"id": str(n)}})
    stream = heard.watch(lambda: False)
    assert [next(stream), next(stream)] == [ChangeNotice("port", "2"), ChangeNotice("port", "3")]


def test_without_a_message_bus_there_are_no_notices() -> None:
    assert list(Notifications(NotificationConfig()).watch(lambda: False)) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("rabbit://user:pw@host:5672/vhost", "rabbit://host:5672/vhost"),
        ("rabbit://u:p@one:5672,u:p@two:5672/v?ssl=1&ssl_key_password=s", "rabbit://two:5672/v"),
        ("rabbit://host", "rabbit://host"),
        ("rabbit://u:p@w@host/", "rabbit://host/"),
    ],
)
def test_passwords_of_urls_are_not_shown(url: str, expected: str) -> None:
    assert shown(url) == expected
