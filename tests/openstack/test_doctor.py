"""What `homeostat doctor` says of a real OpenStack."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeostat.cli import openstack_checks
from homeostat.main import main
from homeostat.model.rates import Rate
from homeostat.store.database import Database
from homeostat.store.operation.request_turns import RequestTurns
from tests.databases import migrated_sqlite
from tests.openstack import projects
from tests.openstack.message_bus import listening
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack
from tests.waiting import until


@pytest.fixture
def database_url(tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, beside a clouds.yaml with the cloud `test`, and one `stranger` whose password is wrong."""
    wrong = {**project.auth, "password": "wr0ng"}
    clouds = {"clouds": {"test": {"auth": project.auth}, "stranger": {"auth": wrong}}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    return migrated_sqlite(tmp_path / "homeostat.sqlite")


def said(capsys: pytest.CaptureFixture[str], url: str, tmp_path: Path, *flags: str) -> dict[str, list[Any]]:
    """Name of a check of OpenStack -> [level, what was found], of each with that name."""
    main(["doctor", "--json", "--state-dir", str(tmp_path), "--database", url, "--cloud", "openstack", *flags])
    found: dict[str, list[Any]] = {}
    for check in json.loads(capsys.readouterr().out)["checks"]:
        assert (check["level"] == "ok") == (not check["remedy"]), check
        if check["name"].startswith("openstack "):
            found.setdefault(check["name"].removeprefix("openstack "), []).append((check["level"], check["found"]))
    return found


def test_a_sound_one(
    openstack_cloud: OpenStack,
    project: Project,
    pool: str,
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bus = openstack_cloud.transport_url
    flags = ("--os-notifications", bus, "--os-notification-pool", pool, "--os-requests-per-second", "network=5")
    with listening(bus, pool=pool) as (process, _):
        until(process.connected.is_set, "the listener")
        found = said(capsys, database_url, tmp_path, "--os-cloud", "test", *flags)
    lacking = "the catalogue does not have it"  # the optional services that no chosen test asked for
    ((level, extensions),) = found.pop("network extensions")
    plugged = {"vpnaas", "sfc", "taas"} <= {*openstack_cloud.services}
    assert (level, extensions.startswith("it has ")) == (("ok", True) if plugged else ("warn", False)), extensions
    assert {level for lines in found.values() for level, words in lines if words != lacking} == {"ok"}
    assert found.keys() >= {"login", "network", "clocks", "roles", "quotas", "notifications", "requests"}
    assert "member" in found["roles"][0][1]
    assert found["quotas"][0][1].startswith("there is room in each of ")
    assert found["login"] == [("ok", f"{project.user_name} in project {project.name}")]
    assert "1 processes listen" in found["notifications"][0][1]


def test_one_with_everything_wrong(
    openstack_cloud: OpenStack,
    pool: str,
    database_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus = openstack_cloud.transport_url
    monkeypatch.setattr(openstack_checks, "VERSIONS", {"network": ("9.1", "9.9")})
    with contextlib.closing(Database(database_url, lambda: 0.0)) as db:
        RequestTurns(db).take("network", Rate(1.0, 1), 5, 10.0)
    monkeypatch.setattr(Database, "now_of", lambda *_: 0.0)
    refused = "rabbit://homeostat:s3cret@127.0.0.1:1/"
    found = said(
        capsys,
        database_url,
        tmp_path,
        *("--os-cloud", "test", "--os-notifications", bus, "--os-notifications", refused),
        *("--os-notification-pool", pool, "--os-requests-per-second", "5"),
    )
    assert found["network"] == [("fail", "its newest microversion is None")]
    (_, unread), (level, away) = found["notifications"]
    assert f"no process listens to the queue {pool}" in unread
    assert (level, away.partition(":")[0]) == ("fail", "rabbit")
    assert "s3cret" not in away
    assert found["requests"][0][0] == "warn"
    assert "network for 5.0 s" in found["requests"][0][1]


def test_a_login_that_is_refused(
    openstack_cloud: OpenStack, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, database_url, tmp_path, "--os-cloud", "stranger")
    assert found["login"][0][0] == "fail"
    assert "wr0ng" not in found["login"][0][1]
    assert found.keys() == {"login", "notifications", "requests"}


def test_a_quota_that_is_nearly_used_up(
    project: Project, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(project.connection()) as user:
        networking: Any = user.network
        network = networking.create_network(name="full")
        try:
            project.limit("network", network=1, port=50)
            ((level, words),) = said(capsys, database_url, tmp_path, "--os-cloud", "test")["quotas"]
            assert (level, words) == ("warn", "nearly used up: network: 1 of 1")
        finally:
            networking.delete_network(network)
            project.limit("network", network=50, port=300)


@pytest.mark.services("barbican")
def test_a_login_that_lacks_a_role(
    openstack_cloud: OpenStack, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Barbican lets readers see nothing."""
    made = projects.create(openstack_cloud)
    try:
        with contextlib.closing(openstack_cloud.admin()) as admin:
            identity: Any = admin.identity
            for role in ("member", "creator"):
                identity.unassign_project_role_from_user(made.id, made.user_id, identity.find_role(role))
        clouds = {"clouds": {"poor": {"auth": made.auth}}}
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump(clouds))
        ((level, words),) = said(capsys, database_url, tmp_path, "--os-cloud", "poor")["roles"]
    finally:
        projects.remove(made)
    assert level == "warn"
    assert words.startswith("key-manager refuses who has the roles ")
    assert "reader" in words
