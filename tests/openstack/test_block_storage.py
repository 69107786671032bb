"""Block storage and the types of volumes, on the real service."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Remedy
from tests.openstack.one_thing import NEVER, Life, Liver, adapter, live, present
from tests.openstack.projects import VOLUMES, Project
from tests.openstack.running import OpenStack
from tests.waiting import until

RUN = uuid.uuid4().hex[:6]


@pytest.fixture(scope="module")
def user(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def admin(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCloud]:
    with adapter(project, tmp_path_factory.mktemp("clouds"), admin=True) as cloud:
        yield cloud


VOLUME = Life(
    "OS::Cinder::Volume",
    {"name": "disk", "size": 1, "metadata": {"a": "b", "n": 1}, "read_only": True, "description": "of mine"},
    (
        {"name": "other", "description": "of yours"},
        {"metadata": {"c": "d"}},
        {"read_only": False, "size": 3},
        {"size": 4, "name": "third"},
    ),
    wrong={"snapshot_id": NEVER},
    lost=("cinder-api", "POST", "/volumes$"),
)


def test_a_volume_lives(openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
    live(user, openstack_cloud, VOLUME)


VOLUME_TYPE = Life(
    "OS::Cinder::VolumeType",
    {"name": f"fast-{RUN}", "description": "very", "metadata": {"a": "b", "x:y": "z"}},
    (
        {"name": f"faster-{RUN}", "description": "still more"},
        {"metadata": {"a": "c"}},
    ),
    wrong={"name": "__DEFAULT__"},
    lost=("cinder-api", "POST", "/types$"),
)


def test_a_volume_type_lives(openstack_cloud: OpenStack, admin: OpenStackCloud) -> None:
    live(admin, openstack_cloud, VOLUME_TYPE)


def test_a_private_type_is_for_its_projects(
    openstack_cloud: OpenStack, admin: OpenStackCloud, project: Project
) -> None:
    values = {"name": f"private-{RUN}", "is_public": False, "projects": [project.id]}
    with contextlib.closing(openstack_cloud.admin()) as keystone:
        identity: Any = keystone.identity
        other = identity.find_project("service", ignore_missing=False).id
    live(
        admin,
        openstack_cloud,
        Life("OS::Cinder::VolumeType", values, ({"projects": [project.id, other]}, {"projects": [other]})),
    )


def test_a_type_may_be_encrypted_and_have_a_quality(openstack_cloud: OpenStack, admin: OpenStackCloud) -> None:
    kinds = [Liver(admin, Life("OS::Cinder::VolumeType", {"name": f"{name}-{RUN}"})) for name in ("one", "two")]
    one, two = (each.create().handle for each in kinds)
    encryption = Life(
        "OS::Cinder::EncryptedVolumeType",
        {"volume_type": f"one-{RUN}", "provider": "luks"},
        ({"provider": "plain"}, {"cipher": "aes-xts-plain64", "key_size": 256, "control_location": "back-end"}),
        wrong={"volume_type": NEVER},
        lost=("cinder-api", "POST", "/encryption$"),
    )
    live(admin, openstack_cloud, encryption)
    specs = Life(
        "OS::Cinder::QoSSpecs",
        {"name": f"slow-{RUN}", "specs": {"consumer": "front-end", "read_iops_sec": 10}},
        ({"specs": {"read_iops_sec": 20}}, {"specs": {"write_iops_sec": "20"}}),
        lost=("cinder-api", "POST", "/qos-specs$"),
    )
    live(admin, openstack_cloud, specs)
    quality = Liver(admin, specs)
    quality.create()
    association = Life(
        "OS::Cinder::QoSAssociation",
        {"qos_specs": f"slow-{RUN}", "volume_types": [one]},
        ({"volume_types": [one, f"two-{RUN}"]}, {"volume_types": [two]}),
        wrong={"volume_types": [NEVER]},
    )
    live(admin, openstack_cloud, association)
    for each in (quality, *kinds):
        each.gone()


def test_a_quota_lives(openstack_cloud: OpenStack, admin: OpenStackCloud, project: Project) -> None:
    volumes = {"project": project.id, "volumes": 50, "gigabytes": 500}
    changes = ({"volumes": 40}, {"snapshots": 3, "backups": 7, "backup_gigabytes": 9})
    live(admin, openstack_cloud, Life("OS::Cinder::Quota", volumes, changes, always=True))
    compute = {"project": project.id, "instances": 50, "fixed_ips": 5, "injected_files": 3}
    live(admin, openstack_cloud, Life("OS::Nova::Quota", compute, ({"cores": 99}, {"key_pairs": 40}), always=True))


# -- what is special about volumes -------------------------------------------------------------------------------------


def volume(cloud: OpenStackCloud, **more: Any) -> Liver:
    one = Liver(cloud, Life("OS::Cinder::Volume", {"name": f"disk-{uuid.uuid4().hex}", "size": 1, **more}))
    one.create()
    return one


def test_a_failed_volume_says_why(openstack_cloud: OpenStack, user: OpenStackCloud) -> None:
    one = Liver(user, Life("OS::Cinder::Volume", {"name": f"bad-{RUN}", "size": 1}))
    with openstack_cloud.fault("volume", op="create_volume", name=f"^bad-{RUN}$", error="disk full"):
        one.handle = present(user.create("volume", [Creation(one.token, one.spec())])[0]).handle
        until(lambda: one.look().properties["status"] == "error", "the volume to fail", lambda _: time.sleep(0.3))
    one.gone()


def test_a_failed_deletion_and_a_failed_extension_are_left_to_the_user(
    openstack_cloud: OpenStack, user: OpenStackCloud
) -> None:
    one = volume(user)
    with openstack_cloud.fault("volume", op="extend_volume", uuid=one.handle, error="no room"):
        one.values["size"] = 2
        one.update(["size"])
        until(lambda: one.look().properties["status"] == "error_extending", "it to fail", lambda _: time.sleep(0.3))
    assert one.verdict(one.look()).remedy is Remedy.MANUAL
    with openstack_cloud.fault("volume", op="delete_volume", uuid=one.handle, error="stuck"):
        user.delete("volume", [one.handle])
        until(lambda: one.look().properties["status"] == "error_deleting", "it to fail", lambda _: time.sleep(0.3))
    assert one.verdict(one.look()).remedy is Remedy.MANUAL


def test_a_smaller_volume_is_refused(user: OpenStackCloud) -> None:
    one = volume(user, size=2)
    (answer,) = user.update("volume", [Change(one.handle, one.spec(size=1), ("size",))])
    assert isinstance(answer, Terminal)
    assert "cannot shrink from 2 GiB to 1 GiB" in str(answer)
    one.gone()


def test_a_volume_starts_with_data(user: OpenStackCloud) -> None:
    source = volume(user, image="mini")
    assert source.look().properties["bootable"] is True
    clone = volume(user, source_volid=source.values["name"])
    assert clone.look().properties["source_volid"] == source.handle
    assert not user.resolve("volume_backup", ["never"])[0]
    clone.gone()
    source.gone()


def test_a_volume_may_get_another_type(user: OpenStackCloud, admin: OpenStackCloud) -> None:
    kind = Liver(admin, Life("OS::Cinder::VolumeType", {"name": f"target-{RUN}"}))
    kind.create()
    one = volume(user)
    one.values["volume_type"] = f"target-{RUN}"
    one.update(["volume_type"])
    until(lambda: one.look().properties["volume_type"] == f"target-{RUN}", "another type", lambda _: time.sleep(0.3))
    one.settled()
    (answer,) = admin.delete("volume_type", [kind.handle])
    assert isinstance(answer, Transient), answer
    one.gone()
    kind.gone()


def test_a_used_up_quota_is_terminal(user: OpenStackCloud, project: Project) -> None:
    project.limit("volume", **VOLUMES)
    (answer,) = user.create("volume", [Creation("q-1", {"name": "q", "size": 5000})])
    assert isinstance(answer, Terminal)
    assert "exceeds allowed" in str(answer)


class TestSnapshots:
    def taken(self, one: Liver, token: str) -> dict[str, Any]:
        arguments = {"token": token, "name": "kept"}
        present(one.cloud.operate("volume", [Operation(one.handle, "snapshot", arguments)])[0])

        def made() -> dict[str, Any]:
            found = one.look().properties.get("snapshots", ())
            return next((each for each in found if each["token"] == token and each["status"] != "creating"), {})

        return until(made, "the snapshot", lambda _: time.sleep(0.3))

    def test_the_volume_lists_it_and_it_is_made_once(self, user: OpenStackCloud) -> None:
        one = volume(user)
        before = one.look().properties
        assert "snapshots" not in before
        first = self.taken(one, f"s-{RUN}")
        assert (first["name"], first["status"]) == ("kept", "available")
        assert self.taken(one, f"s-{RUN}") == first
        after = dict(one.look().properties)
        assert [each["id"] for each in after.pop("snapshots")] == [first["id"]]
        assert one.fields(one.look()) == {n: v for n, v in before.items() if n in one.fields(one.look())}
        assert not user.find("volume", [f"s-{RUN}"])[0].present
        found, nothing = user.find("volume_snapshot", [f"s-{RUN}", "never-1"])
        assert (found.handle, found.properties["status"], nothing.present) == (first["id"], "available", False)
        again = volume(user, size=None, snapshot_id=first["id"])
        again.gone()
        self.removed(user, first["id"])
        (absent,) = user.delete("volume_snapshot", [first["id"]])
        assert isinstance(absent, Observation)
        assert absent.not_found
        one.gone()

    def removed(self, cloud: OpenStackCloud, handle: str) -> None:
        cloud.delete("volume_snapshot", [handle])
        until(
            lambda: not cloud.observe("volume_snapshot", [handle])[0].present,
            "the snapshot to be gone",
            lambda _: time.sleep(0.3),
        )

    def test_it_outlives_the_volume(self, user: OpenStackCloud) -> None:
        one = volume(user)
        kept, token = self.taken(one, f"o-{RUN}"), f"o-{RUN}"
        (answer,) = user.delete("volume", [one.handle])
        assert isinstance(answer, Transient)
        assert kept["id"] in str(answer)
        one.gone()
        seen = user.observe("volume_snapshot", [kept["id"]])[0]
        assert (seen.handle, seen.properties["token"], seen.properties["name"]) == (kept["id"], token, "kept")
        assert seen.properties["status"] == "available"
        assert user.find("volume_snapshot", [token])[0].handle == kept["id"]
        assert not user.find("volume", [token])[0].present
        again = volume(user, size=None, backup_id=kept["id"])
        assert again.look().properties["source_volid"] == seen.properties["copy"]
        again.gone()
        self.removed(user, kept["id"])
        assert not user.find("volume_snapshot", [token])[0].present

    def test_the_volume_goes_back_to_it_in_place(self, user: OpenStackCloud) -> None:
        one = volume(user)
        kept = self.taken(one, f"b-{RUN}")
        one.values["backup_id"] = kept["id"]
        one.update(["backup_id"])
        one.settled()
        one.values |= {"size": 2, "backup_id": None}
        one.update(["size"])
        one.settled()
        change = Change(one.handle, one.spec(backup_id=kept["id"]), ("backup_id",))
        (answer,) = user.update("volume", [change])
        assert isinstance(answer, Terminal)
        assert "size must be equal" in str(answer)
        self.removed(user, kept["id"])
        one.gone()

    def test_one_made_outside_is_not_touched(self, user: OpenStackCloud) -> None:
        one = volume(user)
        body = {"snapshot": {"volume_id": one.handle, "name": "of the user"}}
        made = user.service("block-storage").request("POST", "/snapshots", body)["snapshot"]["id"]
        assert "snapshots" not in one.look().properties
        until(lambda: user.observe("volume_snapshot", [made])[0].properties["status"] == "available", "it")
        (answer,) = user.delete("volume", [one.handle])
        assert isinstance(answer, Transient)
        assert made in str(answer)
        self.removed(user, made)
        one.gone()


class TestAttachments:
    @pytest.fixture(scope="class")
    def servers(self, user: OpenStackCloud) -> list[str]:
        compute = user.service("compute")
        ids = {each["name"]: each["id"] for each in compute.list("/flavors", "flavors")}
        image = user.resolve("image", ["mini"])[0]
        server = {"flavorRef": ids["m1.tiny"], "imageRef": image, "networks": "none"}
        made = [
            compute.request("POST", "/servers", {"server": {**server, "name": f"{name}-{RUN}"}})["server"]["id"]
            for name in ("one", "two")
        ]
        for each in made:
            until(
                lambda each=each: compute.get(f"/servers/{each}")["server"]["status"] == "ACTIVE",  # type: ignore[misc]
                "the server",
                lambda _: time.sleep(0.5),
            )
        return made

    def test_one_lives(self, openstack_cloud: OpenStack, user: OpenStackCloud, servers: list[str]) -> None:
        disk = volume(user)
        values = {"instance_uuid": servers[0], "volume_id": disk.handle}
        lost = ("nova-api", "POST", "/os-volume_attachments$")
        live(user, openstack_cloud, Life("OS::Cinder::VolumeAttachment", values, (), {"volume_id": NEVER}, lost))
        disk.gone()

    def test_it_moves_to_another_server(self, user: OpenStackCloud, servers: list[str]) -> None:
        disk = volume(user)
        one = Liver(user, Life("OS::Cinder::VolumeAttachment", {"instance_uuid": servers[0], "volume_id": disk.handle}))
        one.create()
        assert [each["server_id"] for each in disk.look().properties["attachments"]] == [servers[0]]
        assert user.observe("volume_attachment", [disk.handle])[0].handle == one.handle
        other = Liver(user, Life("OS::Cinder::VolumeAttachment", {**one.values, "instance_uuid": servers[1]}))
        (answer,) = user.create("volume_attachment", [Creation(other.token, other.spec())])
        assert isinstance(answer, Transient)
        one.values["instance_uuid"] = servers[1]
        answers: list[Any] = []

        def update() -> bool:
            change = Change(one.handle, one.spec(), ("instance_uuid",))
            answers[:] = user.update("volume_attachment", [change])
            return isinstance(answers[0], Observation)

        until(update, "it to be detached", lambda _: time.sleep(0.5))
        assert not answers[0].present
        other.create()
        disk.values["size"] = 2
        disk.update(["size"])
        disk.settled()
        (answer,) = user.delete("volume", [disk.handle])
        assert isinstance(answer, Transient)
        other.gone()
        disk.gone()
