"""What the last release leaves behind: stacks in every status and clusters, and how each of them goes on."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.upgrade.installations import Installation
from tests.waiting import until

from homeostat.clouds.local import LocalCloud

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "local", "flavor": "m1.nano"}}
VOLUME = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}


def stand_in(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::TestResource", "properties": {"value": "x", **properties}}


def template(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": resources, **more}


def create(
    at: Installation, name: str, resources: dict[str, Any], status: str = "CREATE_COMPLETE", **more: Any
) -> None:
    body = {"stack_name": name, "template": template(resources, **more), "disable_rollback": True}
    at.request("POST", "/stacks", body)
    at.await_status(name, status)


def update(
    at: Installation, name: str, resources: dict[str, Any], status: str = "UPDATE_COMPLETE", **more: Any
) -> None:
    at.stack("PUT", name, "", {"template": template(resources, **more), "disable_rollback": True})
    at.await_status(name, status)


@dataclass(frozen=True)
class Case:
    """A stack that one version makes, and another one takes over.

    status — as it is left, and found; make — brings it there; go_on — uses it, and asserts that this works.
    """

    name: str
    status: str
    make: Callable[[Installation], None]
    go_on: Callable[[Installation], None]


@dataclass
class Cases:
    """All of them, each from a class with the two methods `make` and `go_on`."""

    all: list[Case] = field(default_factory=list)

    def add(self, status: str) -> Callable[[type[Any]], type[Any]]:
        def added(kind: type[Any]) -> type[Any]:
            self.all.append(Case(kind.__name__.lower(), status, kind.make, kind.go_on))
            return kind

        return added


CASES = Cases()


@CASES.add("CREATE_COMPLETE")
class Whole:
    """Server, volume, attachment, a secret, outputs, nested groups, records of the service itself."""

    resources: dict[str, Any] = {
        "web": SERVER,
        "disk": VOLUME,
        "attached": {
            "type": "OS::Cinder::VolumeAttachment",
            "properties": {"instance_uuid": {"get_resource": "web"}, "volume_id": {"get_resource": "disk"}},
        },
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo", "group": "script"}},
        "key": {"type": "OS::Heat::RandomString", "properties": {"length": 12}},
        "group": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": VOLUME}},
        "chain": {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["OS::Heat::TestResource"] * 2}},
    }
    more: dict[str, Any] = {
        "parameters": {"word": {"type": "string", "default": "x", "hidden": True}},
        "outputs": {"web": {"value": {"get_resource": "web"}}, "key": {"value": {"get_attr": ["key", "value"]}}},
    }

    @classmethod
    def make(cls, old: Installation) -> None:
        create(old, "whole", cls.resources, **cls.more)

    @classmethod
    def go_on(cls, new: Installation) -> None:
        before = outputs(new, "whole")
        update(new, "whole", {**cls.resources, "another": VOLUME}, **cls.more)
        assert outputs(new, "whole") == before
        server = new.stack("GET", "whole", "/resources/web")["resource"]["physical_resource_id"]
        killed = process_of(new, server)
        os.kill(killed, 9)
        until(lambda: process_of(new, server) not in (0, killed), "the server to be healed")


@CASES.add("CREATE_FAILED")
class Failed:
    resources: dict[str, Any] = {"bad": stand_in(fail=True), "after": {**stand_in(), "depends_on": "bad"}}

    @classmethod
    def make(cls, old: Installation) -> None:
        create(old, "failed", cls.resources, "CREATE_FAILED")

    @classmethod
    def go_on(cls, new: Installation) -> None:
        update(new, "failed", {"bad": stand_in(), "after": {**stand_in(), "depends_on": "bad"}})


@CASES.add("CREATE_IN_PROGRESS")
class Creating:
    """It waits for a signal, as long as that takes."""

    resources: dict[str, Any] = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "condition": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "count": 2, "timeout": 3600},
        },
        "after": {**stand_in(), "depends_on": "condition"},
    }

    @classmethod
    def make(cls, old: Installation) -> None:
        create(old, "creating", cls.resources, "CREATE_IN_PROGRESS")
        until(lambda: resource_status(old, "creating", "condition") == "CREATE_IN_PROGRESS", "the condition")
        cls._signal(old, "1")

    @classmethod
    def go_on(cls, new: Installation) -> None:
        cls._signal(new, "2")
        new.await_status("creating", "CREATE_COMPLETE")

    @staticmethod
    def _signal(at: Installation, id: str) -> None:
        at.stack("POST", "creating", "/resources/handle/signal", {"id": id, "status": "SUCCESS", "data": "x"})


@CASES.add("UPDATE_IN_PROGRESS")
class Updating:
    """In the middle of an update that replaces one thing, and waits for another."""

    @staticmethod
    def make(old: Installation) -> None:
        create(old, "updating", {"disk": VOLUME, "slow": stand_in()})
        slow = {"disk": VOLUME, "more": VOLUME, "slow": stand_in(action_wait_secs={"update": -1}, wait_secs=1)}
        update(old, "updating", slow, "UPDATE_IN_PROGRESS")
        until(lambda: resource_status(old, "updating", "slow") == "UPDATE_IN_PROGRESS", "the slow one")

    @staticmethod
    def go_on(new: Installation) -> None:
        update(new, "updating", {"disk": VOLUME, "more": VOLUME, "slow": stand_in(action_wait_secs={"update": 0})})


@CASES.add("UPDATE_FAILED")
class Halfway:
    """An update has failed, and left something new beside something old."""

    @staticmethod
    def make(old: Installation) -> None:
        create(old, "halfway", {"disk": VOLUME, "x": stand_in()})
        update(old, "halfway", {"disk": VOLUME, "new": VOLUME, "x": stand_in(fail=True)}, "UPDATE_FAILED")

    @staticmethod
    def go_on(new: Installation) -> None:
        update(new, "halfway", {"x": stand_in()})


@CASES.add("SUSPEND_COMPLETE")
class Suspended:
    @staticmethod
    def make(old: Installation) -> None:
        create(old, "suspended", {"web": SERVER})
        old.run("suspend", "suspended")

    @staticmethod
    def go_on(new: Installation) -> None:
        new.run("resume", "suspended")
        assert new.status("suspended") == "RESUME_COMPLETE"


@CASES.add("LOCK_COMPLETE")
class Locked:
    @staticmethod
    def make(old: Installation) -> None:
        create(old, "locked", {"web": SERVER, "disk": VOLUME})
        old.run("lock", "locked", "--reason", "audit")

    @staticmethod
    def go_on(new: Installation) -> None:
        refused = new.stack("PUT", "locked", "", {"template": template({"disk": VOLUME})}, expected=(409, 423))
        assert "audit" in json.dumps(refused)
        new.run("unlock", "locked")
        update(new, "locked", {"disk": VOLUME})


@CASES.add("CHECK_FAILED")
class Checked:
    @staticmethod
    def make(old: Installation) -> None:
        create(old, "checked", {"web": SERVER})
        old.run("convergence", "checked", "--off")
        server = old.stack("GET", "checked", "/resources/web")["resource"]["physical_resource_id"]
        os.kill(process_of(old, server), 9)
        assert old.home.run("check", "checked").code == 1

    @staticmethod
    def go_on(new: Installation) -> None:
        new.run("converge", "checked")
        until(lambda: resource_status(new, "checked", "web") != "CHECK_FAILED", "the server to be healed")


@CASES.add("SNAPSHOT_COMPLETE")
class Saved:
    @staticmethod
    def make(old: Installation) -> None:
        create(old, "saved", {"disk": VOLUME})
        old.stack("POST", "saved", "/snapshots", {"name": "before"})
        until(lambda: _snapshots(old)[0]["status"] == "COMPLETE", "the snapshot")

    @staticmethod
    def go_on(new: Installation) -> None:
        update(new, "saved", {"disk": VOLUME, "extra": VOLUME})
        (snapshot,) = _snapshots(new)
        new.stack("POST", "saved", f"/snapshots/{snapshot['id']}/restore")
        new.await_status("saved", "RESTORE_COMPLETE")
        assert [each["resource_name"] for each in resources_of(new, "saved")] == ["disk"]


@CASES.add("DELETE_IN_PROGRESS")
class Deleting:
    """In the middle of a deletion: one thing waits for a signal, and another for that."""

    @staticmethod
    def make(old: Installation) -> None:
        config = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "rm -r data", "group": "script"}}
        deployed = {"config": {"get_resource": "config"}, "server": "0fd6d0e9-12a3-4bd9-a5e4-6d3f40ab3a4b"}
        cleanup = {"type": "OS::Heat::SoftwareDeployment", "properties": {**deployed, "actions": ["DELETE"]}}
        create(old, "deleting", {"disk": VOLUME, "config": config, "x": {**cleanup, "depends_on": "disk"}})
        old.stack("DELETE", "deleting")
        until(lambda: resource_status(old, "deleting", "x") == "DELETE_IN_PROGRESS", "the deletion")

    @staticmethod
    def go_on(new: Installation) -> None:
        new.stack("POST", "deleting", "/resources/x/signal", {"deploy_status_code": 0})
        new.await_status("deleting", "absent")


@CASES.add("UPDATE_IN_PROGRESS")
class Rollout:
    """New metadata wait for an approval."""

    @staticmethod
    def _fleet(release: int) -> dict[str, Any]:
        group = {
            "type": "OS::Heat::ResourceGroup",
            "metadata": {"release": release},
            "update_policy": {"rollout": {"steps": ["1", "100%"], "approval": True}},
            "properties": {"count": 3, "metadata_update_pattern": "canary", "resource_def": VOLUME},
        }
        return {"fleet": group}

    @classmethod
    def make(cls, old: Installation) -> None:
        create(old, "rollout", cls._fleet(1))
        update(old, "rollout", cls._fleet(2), "UPDATE_IN_PROGRESS")
        until(lambda: "approv" in old.run("rollout", "status", "rollout").out, "the first step")

    @staticmethod
    def go_on(new: Installation) -> None:
        def approved() -> bool:
            new.home.run("rollout", "approve", "rollout")
            return new.status("rollout") == "UPDATE_COMPLETE"

        until(approved, "the rollout to end")


@CASES.add("UPDATE_IN_PROGRESS")
class Staged:
    """A new definition has reached the first of three members, and waits for an approval."""

    @staticmethod
    def _fleet(description: str) -> dict[str, Any]:
        disk = {"type": "OS::Cinder::Volume", "properties": {"size": 1, "description": description}}
        group = {
            "type": "OS::Heat::ResourceGroup",
            "update_policy": {"rollout": {"applies_to": "definition", "steps": ["1", "100%"], "approval": True}},
            "properties": {"count": 3, "metadata_update_pattern": "canary", "resource_def": disk},
        }
        return {"fleet": group}

    @classmethod
    def make(cls, old: Installation) -> None:
        create(old, "staged", cls._fleet("one"))
        update(old, "staged", cls._fleet("two"), "UPDATE_IN_PROGRESS")
        until(lambda: "approv" in old.run("rollout", "status", "staged").out, "the first step")

    @staticmethod
    def go_on(new: Installation) -> None:
        def approved() -> bool:
            new.home.run("rollout", "approve", "staged")
            return new.status("staged") == "UPDATE_COMPLETE"

        until(approved, "the rollout to end")


# -- clusters ----------------------------------------------------------------------------------------------------------

HEALTH = {
    "type": "senlin.policy.health",
    "version": "1.2",
    "properties": {
        "detection": {"interval": 10, "node_update_timeout": 1, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
        "recovery": {"actions": [{"name": "RECREATE"}]},
    },
}


def make_cluster(old: Installation) -> None:
    """A cluster of two nodes with policies of two types, and a receiver that scales it out."""
    spec = {
        "type": "os.nova.server",
        "version": "1.0",
        "properties": {"name": "n", "image": "local", "flavor": "m1.nano"},
    }
    clustering(old, "POST", "/profiles", {"profile": {"name": "small", "spec": spec}})
    scaling = {"type": "senlin.policy.scaling", "version": "1.0", "properties": {"event": "CLUSTER_SCALE_OUT"}}
    for name, policy in (("health", HEALTH), ("scaling", scaling)):
        clustering(old, "POST", "/policies", {"policy": {"name": name, "spec": policy}})
    wanted = {"name": "tier", "profile_id": "small", "desired_capacity": 2, "min_size": 0, "max_size": 5}
    clustering(old, "POST", "/clusters", {"cluster": wanted})
    _await_cluster(old, 2)
    for name in ("health", "scaling"):
        body = {"policy_attach": {"policy_id": name, "enabled": True}}
        clustering(old, "POST", "/clusters/tier/actions", body)
    until(lambda: len(clustering(old, "GET", "/clusters/tier/policies")["cluster_policies"]) == 2, "the policies")
    receiver = {"name": "more", "cluster_id": "tier", "type": "webhook", "action": "CLUSTER_SCALE_OUT"}
    clustering(old, "POST", "/receivers", {"receiver": receiver})


def cluster_goes_on(new: Installation) -> None:
    clustering(new, "POST", "/clusters/tier/actions", {"resize": {"adjustment_type": "EXACT_CAPACITY", "number": 3}})
    nodes = _await_cluster(new, 3)
    lost = nodes[0]["physical_id"]
    os.kill(process_of(new, lost), 9)
    until(lambda: lost not in {each["physical_id"] for each in _await_cluster(new, 3)}, "the node to be recovered")
    clustering(new, "DELETE", "/clusters/tier")
    until(lambda: not clustering(new, "GET", "/clusters")["clusters"], "the cluster to go")


def clustering(at: Installation, method: str, path: str, body: Any = None) -> Any:
    return at.request(method, f"/clustering/v1{path}", body)


def _await_cluster(at: Installation, size: int) -> Sequence[dict[str, Any]]:
    def nodes() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = clustering(at, "GET", "/nodes?cluster_id=tier")["nodes"]
        cluster = clustering(at, "GET", "/clusters/tier")["cluster"]
        well = cluster["status"] == "ACTIVE" and all(each["status"] == "ACTIVE" for each in found)
        return found if well and len(found) == size else []

    return until(nodes, f"{size} active nodes")


# -- what users see ----------------------------------------------------------------------------------------------------


def outputs(at: Installation, name: str) -> dict[str, Any]:
    found = at.stack("GET", name)["stack"]["outputs"]
    return {each["output_key"]: each["output_value"] for each in found}


def resources_of(at: Installation, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = at.stack("GET", name, "/resources?nested_depth=5")["resources"]
    return found


def resource_status(at: Installation, name: str, resource: str) -> str:
    return next((each["resource_status"] for each in resources_of(at, name) if each["resource_name"] == resource), "")


def process_of(at: Installation, server: str) -> int:
    """The process of a server of the local cloud; 0 for none."""
    (seen,) = LocalCloud(at.home.state.cloud).observe("server", [server])
    return int(seen.properties.get("pid") or 0)


def _snapshots(at: Installation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = at.stack("GET", "saved", "/snapshots")["snapshots"]
    return found


def documents(at: Installation) -> dict[str, Any]:
    """All that the APIs show of what was made: the path of each value -> the value."""
    found: dict[str, Any] = {}
    for case in CASES.all:
        for part in ("", "/template", "/environment", "/files", "/outputs", "/events?limit=1000", "/snapshots"):
            found |= _leaves(f"{case.name}{part}", at.stack("GET", case.name, part))
        for resource in resources_of(at, case.name):
            found |= _leaves(f"{case.name}/{resource['resource_name']} {resource['physical_resource_id']}", resource)
    for kind in ("profiles", "policies", "clusters", "nodes", "receivers", "actions"):
        found |= _leaves(kind, clustering(at, "GET", f"/{kind}"))
    url = at.home.running().url
    shown = {place: value for place, value in found.items() if not place.endswith(".looked_at")}
    return {place: value.replace(url, "") if isinstance(value, str) else value for place, value in shown.items()}


def _leaves(place: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {path: leaf for key, each in value.items() for path, leaf in _leaves(f"{place}.{key}", each).items()}
    if isinstance(value, list):
        return {path: leaf for key, each in enumerate(value) for path, leaf in _leaves(f"{place}.{key}", each).items()}
    return {place: value}
