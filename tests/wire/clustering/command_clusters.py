"""Proofs that the commands for clusters and nodes work."""

import json

from homeostat.clouds.port import Creation
from tests.senlin_command import ACTION
from tests.wire.clustering.command_world import World, proves

# -- clusters ----------------------------------------------------------------------------------------------------------


@proves("create")
def create(world: World) -> None:
    sizes = ("--min-size", "1", "--max-size", "3", "--desired-capacity", "1", "--timeout", "600")
    more = ("--metadata", "a=b;c=d", "--config", "node.name.format=n-$3I", "--wait")
    made = world.shown("create", "--profile", "web", *sizes, *more, "more")
    assert (made["status"], made["min_size"], made["max_size"], made["timeout"]) == ("ACTIVE", 1, 3, 600)
    assert json.loads(made["metadata"]) == {"a": "b", "c": "d"}
    assert world.shown("members", "list", "more")[0]["name"] == "n-001"


@proves("list")
def list_clusters(world: World) -> None:
    (listed,) = world.shown("list", "--filters", "name=c;status=ACTIVE", "--sort", "name:asc", "--limit", "5")
    assert (listed["id"], listed["name"], listed["status"]) == (world.cluster[:8], "c", "ACTIVE")
    assert world.shown("list", "--marker", world.cluster) == []
    assert world.cluster in {each["id"] for each in world.shown("list", "--full-id", "--global-project")}


@proves("show")
def show(world: World) -> None:
    shown = world.shown("show", "c")
    assert (shown["id"], shown["desired_capacity"], shown["node_ids"].split()) == (world.cluster, 2, world.nodes)
    assert "Cluster not found" in world.run("cluster", "show", "none-such", code=1)


@proves("update")
def update(world: World) -> None:
    shown = world.shown("update", "--name", "renamed", "--metadata", "x=y", "--timeout", "700", "c", "--wait")
    assert (shown["name"], shown["timeout"], json.loads(shown["metadata"])) == ("renamed", 700, {"x": "y"})


@proves("delete")
def delete(world: World) -> None:
    assert "accepted by action" in world.run("cluster", "delete", "--force", "c", "--wait")
    assert world.shown("list") == []


@proves("resize")
def resize(world: World) -> None:
    assert world.shown("resize", "--capacity", "3", "--max-size", "4", "c", "--wait")["desired_capacity"] == 3
    assert world.shown("resize", "--adjustment", "-1", "--strict", "c", "--wait")["desired_capacity"] == 2
    assert world.shown("resize", "--percentage", "50", "--min-step", "2", "c", "--wait")["desired_capacity"] == 4


@proves("expand")
def expand(world: World) -> None:
    assert world.shown("expand", "--count", "1", "c", "--wait")["desired_capacity"] == 3
    assert len(world.members()) == 3


@proves("shrink")
def shrink(world: World) -> None:
    assert world.shown("shrink", "c", "--wait")["desired_capacity"] == 1
    assert len(world.members()) == 1


@proves("check")
def check(world: World) -> None:
    (shown,) = world.shown("check", "c", "--wait")
    assert shown["Status"] == "ACTIVE"


@proves("collect")
def collect(world: World) -> None:
    found = {
        each["node_id"]: each["attr_value"] for each in world.shown("collect", "--path", "status", "--full-id", "c")
    }
    assert found == dict.fromkeys(world.nodes, "ACTIVE")


@proves("run")
def run(world: World) -> None:
    """It logs in at the addresses of the nodes with ssh: here it finds none on that network, and says so for each."""
    script = world.run.text("script.sh", "true")
    options = ("--address-type", "fixed", "--ssh-options", "-o ConnectTimeout=1 -o BatchMode=yes")
    said = world.run("cluster", "run", "--script", script, *options, "--network", "none-such", "c")
    assert sorted(line[6:] for line in said.splitlines() if line.startswith("node: ")) == sorted(world.nodes)


@proves("members list")
def list_members(world: World) -> None:
    listed = world.shown("members", "list", "--full-id", "--sort", "index:desc", "c")
    assert [each["index"] for each in listed] == [2, 1]
    assert all(each["physical_id"] for each in listed)


@proves("members add")
def add_members(world: World) -> None:
    node = world.alone()
    assert world.shown("members", "add", "--nodes", "alone", "c", "--wait")["desired_capacity"] == 3
    assert world.members() == [*world.nodes, node["id"]]


@proves("members del")
def delete_members(world: World) -> None:
    first, second = world.nodes
    assert world.shown("members", "del", "--nodes", first, "c", "--wait")["desired_capacity"] == 1
    assert world.shown("node", "show", first)["cluster_id"] in ("", None)
    world.shown("members", "del", "--nodes", second, "-d", "true", "c", "--wait")
    assert [each["id"] for each in world.shown("node", "list", "--full-id")] == [first]


@proves("members replace")
def replace_members(world: World) -> None:
    node = world.alone()
    world.shown("members", "replace", "--nodes", f"{world.nodes[0]}={node['id']}", "c", "--wait")
    assert world.members() == [world.nodes[1], node["id"]]


# -- nodes -------------------------------------------------------------------------------------------------------------


@proves("node create")
def create_node(world: World) -> None:
    made = world.shown("node", "create", "--profile", "web", "--role", "db", "--metadata", "a=b", "alone")
    assert (made["name"], made["role"], made["index"]) == ("alone", "db", -1)
    made = world.shown("node", "create", "--profile", "web", "--cluster", "c", "ignored")
    assert (made["cluster_id"], made["index"]) == (world.cluster, 3)


@proves("node list")
def list_nodes(world: World) -> None:
    listed = world.shown("node", "list", "--cluster", "c", "--filters", "status=ACTIVE", "--sort", "index")
    assert [each["id"] for each in listed] == [each[:8] for each in world.nodes]
    assert [each["index"] for each in world.shown("node", "list", "--limit", "1", "--sort", "index")] == [1, 2]


@proves("node show")
def show_node(world: World) -> None:
    shown = world.shown("node", "show", "--details", world.nodes[0])
    assert (shown["id"], shown["status"]) == (world.nodes[0], "ACTIVE")
    assert "m1.small" in str(shown["details"])
    assert "Node not found" in world.run("cluster", "node", "show", "none-such", code=1)


@proves("node update")
def update_node(world: World) -> None:
    shown = world.shown("node", "update", "--role", "web", "--metadata", "a=b", "--tainted", "true", world.nodes[0])
    assert (shown["role"], shown["tainted"]) == ("web", True)


@proves("node delete")
def delete_node(world: World) -> None:
    action = world.run.begun("cluster", "node", "delete", "--force", world.nodes[0])
    world.ended(action)
    assert world.members() == world.nodes[1:]


@proves("node adopt")
def adopt_node(world: World) -> None:
    spec = {"name": "old", "flavor": "m1.small", "image": "cirros", "networks": []}
    (made,) = world.service.cloud.create("server", [Creation("by-hand", spec)])
    handle = str(made.handle)  # type: ignore[union-attr]
    asked = ("node", "adopt", "--identity", handle, "--type", "os.nova.server-1.0")
    assert "m1.small" in str(world.shown(*asked, "--preview")["node_preview"])
    shown = world.shown(*asked, "--name", "new", "--role", "db", "--metadata", "a=b")
    assert (shown["name"], shown["role"], shown["physical_id"]) == ("new", "db", handle)


@proves("node check")
def check_node(world: World) -> None:
    action = world.done("node", "check", world.nodes[0])
    assert (action["action"], action["target_id"]) == ("NODE_CHECK", world.nodes[0])


@proves("node recover")
def recover_node(world: World) -> None:
    action = world.done("node", "recover", "--check", "true", world.nodes[0])
    assert (action["action"], action["target_id"]) == ("NODE_RECOVER", world.nodes[0])


@proves("node op")
def operate_node(world: World) -> None:
    """The command fails once its request was accepted, whatever the service answers: it returns no list to print."""
    asked = ("cluster", "node", "op", "--operation", "reboot", "--params", "type=SOFT", world.nodes[0])
    found = ACTION.search(world.run(*asked, code=1))
    assert found is not None
    assert world.ended(found[1])["action"] == "NODE_OPERATION"
    wrong = world.run("cluster", "node", "op", "--operation", "none-such", world.nodes[0], code=1)
    assert "Request error" in wrong


@proves("op")
def operate(world: World) -> None:
    action = world.done("op", "--operation", "reboot", "c")
    assert (action["action"], action["target_id"]) == ("CLUSTER_OPERATION", world.cluster)


@proves("recover")
def recover(world: World) -> None:
    (shown,) = world.shown("recover", "--check", "true", "c", "--wait")
    assert shown["Status"] == "ACTIVE"
