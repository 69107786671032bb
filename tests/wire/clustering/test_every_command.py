"""Every command that python-senlinclient gives the `openstack` command works: the genuine client."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.simulated import SimulatedCloud
from tests import senlin_command
from tests.senlin_command import SenlinCommand
from tests.wire.clustering import command_clusters  # noqa: F401  its proofs are in the table, too
from tests.wire.clustering.command_world import PROOFS, World, proves
from tests.wire.clustering.lives import SERVER
from tests.wire.running import Running, database, serving, working

DELETION = {"type": "senlin.policy.deletion", "version": "1.0", "properties": {"criteria": "OLDEST_FIRST"}}


# -- about -------------------------------------------------------------------------------------------------------------


@proves("build info")
def build(world: World) -> None:
    shown = world.shown("build", "info")
    assert set(shown) == {"api", "engine"}
    assert json.loads(shown["api"])["revision"]


@proves("service list")
def services(world: World) -> None:
    assert {each["state"] for each in world.shown("service", "list")} == {"up"}


# -- profiles ----------------------------------------------------------------------------------------------------------


@proves("profile type list")
def profile_types(world: World) -> None:
    listed = {(each["name"], each["version"]): each for each in world.shown("profile", "type", "list")}
    assert listed["os.nova.server", "1.0"]["support_status"] == "SUPPORTED since 2016.04"


@proves("profile type show")
def profile_type(world: World) -> None:
    shown = world.shown("profile", "type", "show", "os.nova.server-1.0")
    assert shown["schema"]["flavor"]["required"] is True


@proves("profile type ops")
def profile_type_operations(world: World) -> None:
    assert "reboot" in world.shown("profile", "type", "ops", "os.nova.server-1.0")["operations"]


@proves("profile create")
def create_profile(world: World) -> None:
    path = world.spec("server.yaml", SERVER)
    made = world.shown("profile", "create", "--spec-file", path, "--metadata", "a=b", "more")
    assert (made["type"], json.loads(made["metadata"])) == ("os.nova.server-1.0", {"a": "b"})
    world.run.text("t.yaml", "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::RandomString}}")
    stack = {"type": "os.heat.stack", "version": "1.0", "properties": {"template": "t.yaml"}}
    made = world.shown("profile", "create", "--spec-file", world.spec("stack.yaml", stack), "stacks")
    assert made["type"] == "os.heat.stack-1.0"


@proves("profile validate")
def validate_profile(world: World) -> None:
    shown = world.shown("profile", "validate", "--spec-file", world.spec("server.yaml", SERVER))
    assert (shown["name"], shown["id"]) == ("validated_profile", None)
    wrong = {**SERVER, "properties": {**SERVER["properties"], "flaver": "m1.small"}}
    path = world.spec("wrong.yaml", wrong)
    assert "flaver" in world.run("cluster", "profile", "validate", "--spec-file", path, code=1)


@proves("profile list")
def list_profiles(world: World) -> None:
    (listed,) = world.shown("profile", "list", "--filters", "name=web", "--sort", "name:desc")
    assert (listed["name"], len(listed["id"])) == ("web", 8)
    assert world.shown("profile", "list", "--full-id", "--limit", "1")[0]["id"].startswith(listed["id"])


@proves("profile show")
def show_profile(world: World) -> None:
    assert "m1.small" in str(world.shown("profile", "show", "web")["spec"])
    assert "Profile not found" in world.run("cluster", "profile", "show", "none-such", code=1)


@proves("profile update")
def update_profile(world: World) -> None:
    shown = world.shown("profile", "update", "--name", "renamed", "--metadata", "c=d", "web")
    assert (shown["name"], json.loads(shown["metadata"])) == ("renamed", {"c": "d"})


@proves("profile delete")
def delete_profile(world: World) -> None:
    world.run("cluster", "profile", "create", "--spec-file", world.spec("server.yaml", SERVER), "more")
    world.run("cluster", "profile", "delete", "--force", "more")
    assert [each["name"] for each in world.shown("profile", "list")] == ["web"]
    assert "still referenced" in world.run("cluster", "profile", "delete", "--force", "web", code=1)


# -- policies ----------------------------------------------------------------------------------------------------------


@proves("policy type list")
def policy_types(world: World) -> None:
    listed = {each["name"] for each in world.shown("policy", "type", "list")}
    assert {"senlin.policy.health", "senlin.policy.scaling"} <= listed


@proves("policy type show")
def policy_type(world: World) -> None:
    assert "criteria" in world.shown("policy", "type", "show", "senlin.policy.deletion-1.0")["schema"]


@proves("policy create")
def create_policy(world: World) -> None:
    made = world.shown("policy", "create", "--spec-file", world.spec("policy.yaml", DELETION), "oldest")
    assert (made["name"], made["type"]) == ("oldest", "senlin.policy.deletion-1.0")


@proves("policy validate")
def validate_policy(world: World) -> None:
    shown = world.shown("policy", "validate", "--spec-file", world.spec("policy.yaml", DELETION))
    assert (shown["name"], shown["id"]) == ("validated_policy", None)


@proves("policy list")
def list_policies(world: World) -> None:
    create_policy(world)
    (listed,) = world.shown("policy", "list", "--filters", "type=senlin.policy.deletion-1.0")
    assert listed["name"] == "oldest"


@proves("policy show")
def show_policy(world: World) -> None:
    create_policy(world)
    assert "OLDEST_FIRST" in str(world.shown("policy", "show", "oldest")["spec"])


@proves("policy update")
def update_policy(world: World) -> None:
    create_policy(world)
    assert world.shown("policy", "update", "--name", "renamed", "oldest")["name"] == "renamed"


@proves("policy delete")
def delete_policy(world: World) -> None:
    create_policy(world)
    world.run("cluster", "policy", "delete", "--force", "oldest")
    assert world.shown("policy", "list") == []


def attached(world: World) -> None:
    create_policy(world)
    world.done("policy", "attach", "--policy", "oldest", "c", "--wait")


@proves("policy attach")
def attach(world: World) -> None:
    create_policy(world)
    action = world.done("policy", "attach", "--policy", "oldest", "--enabled", "false", "c", "--wait")
    assert action["action"] == "CLUSTER_ATTACH_POLICY"
    assert world.shown("policy", "binding", "show", "--policy", "oldest", "c")["is_enabled"] is False


@proves("policy binding list")
def list_bindings(world: World) -> None:
    attached(world)
    (listed,) = world.shown("policy", "binding", "list", "c")
    assert (listed["policy_name"], listed["is_enabled"]) == ("oldest", True)
    assert world.shown("policy", "binding", "list", "--filters", "policy_name=other", "c") == []


@proves("policy binding show")
def show_binding(world: World) -> None:
    attached(world)
    shown = world.shown("policy", "binding", "show", "--policy", "oldest", "c")
    assert (shown["policy_type"], shown["cluster_name"]) == ("senlin.policy.deletion-1.0", "c")


@proves("policy binding update")
def update_binding(world: World) -> None:
    attached(world)
    world.done("policy", "binding", "update", "--policy", "oldest", "--enabled", "false", "c")
    assert world.shown("policy", "binding", "list", "c")[0]["is_enabled"] is False


@proves("policy detach")
def detach(world: World) -> None:
    attached(world)
    world.done("policy", "detach", "--policy", "oldest", "c", "--wait")
    assert world.shown("policy", "binding", "list", "c") == []


# -- receivers ---------------------------------------------------------------------------------------------------------


@proves("receiver create")
def create_receiver(world: World) -> None:
    made = world.shown(
        "receiver", "create", "--cluster", "c", "--action", "CLUSTER_SCALE_OUT", "--params", "count=1", "more"
    )
    assert (made["cluster_id"], json.loads(made["params"])) == (world.cluster, {"count": "1"})
    assert "/trigger?V=2&count=1" in json.loads(made["channel"])["alarm_url"]


@proves("receiver list")
def list_receivers(world: World) -> None:
    create_receiver(world)
    (listed,) = world.shown("receiver", "list", "--filters", "action=CLUSTER_SCALE_OUT")
    assert (listed["name"], listed["type"]) == ("more", "webhook")


@proves("receiver show")
def show_receiver(world: World) -> None:
    create_receiver(world)
    assert world.shown("receiver", "show", "more")["action"] == "CLUSTER_SCALE_OUT"


@proves("receiver update")
def update_receiver(world: World) -> None:
    create_receiver(world)
    shown = world.shown("receiver", "update", "--name", "less", "--action", "CLUSTER_SCALE_IN", "more")
    assert (shown["name"], shown["action"]) == ("less", "CLUSTER_SCALE_IN")


@proves("receiver delete")
def delete_receiver(world: World) -> None:
    create_receiver(world)
    world.run("cluster", "receiver", "delete", "--force", "more")
    assert world.shown("receiver", "list") == []


# -- actions and events ------------------------------------------------------------------------------------------------


@proves("action list")
def list_actions(world: World) -> None:
    (listed,) = world.shown("action", "list", "--full-id", "--filters", f"target={world.cluster}")
    assert (listed["id"], listed["action"], listed["cluster_id"]) == (world.action, "CLUSTER_CREATE", world.cluster)


@proves("action show")
def show_action(world: World) -> None:
    assert world.shown("action", "show", world.action)["status"] == "SUCCEEDED"
    assert "Action not found" in world.run("cluster", "action", "show", "none-such", code=1)


@proves("action update")
def update_action(world: World) -> None:
    ended = world.run("cluster", "action", "update", "--status", "CANCELLED", world.action, code=1)
    assert "is in status (SUCCEEDED)" in ended


@proves("event list")
def list_events(world: World) -> None:
    listed = world.shown("event", "list", "--filters", f"oid={world.cluster}", "--sort", "timestamp:asc")
    assert [each["status"] for each in listed] == ["start", "end"]
    assert {each["obj_name"] for each in listed} == {"c"}


@proves("event show")
def show_event(world: World) -> None:
    first = world.shown("event", "list", "--full-id")[0]
    assert world.shown("event", "show", first["id"])["obj_id"] == first["obj_id"]


# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command() -> Iterator["subprocess.Popen[str]"]:
    with senlin_command.running(senlin_command.find_environment(), "--often") as process:
        yield process


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """One for each test: without logging in, the command has no way to name a project."""
    cloud = SimulatedCloud(time.time)
    with database(tmp_path) as db, serving(db, NoAccess(), cloud=cloud) as url, working(db, cloud, url=url):
        yield Running(url, db, cloud)


@pytest.fixture
def world(service: Running, command: "subprocess.Popen[str]", tmp_path: Path) -> World:
    environ = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": f"{service.url}/clustering"}
    run = SenlinCommand(command, tmp_path, environ)
    run("cluster", "profile", "create", "--spec-file", run.text("web.yaml", yaml.safe_dump(SERVER)), "web")
    made = run.shown("cluster", "create", "--profile", "web", "--desired-capacity", "2", "c", "--wait")
    (action,) = run.shown("cluster", "action", "list", "--full-id")
    return World(run, service, made["id"], action["id"], made["node_ids"].split())


@pytest.mark.shows("HP1")
@pytest.mark.parametrize("name", sorted(PROOFS))
def test_it_works(name: str, world: World) -> None:
    PROOFS[name](world)


def test_every_command_is_in_the_table() -> None:
    known = senlin_command.commands(senlin_command.find_environment())
    assert known == {f"cluster {name}" for name in PROOFS}
