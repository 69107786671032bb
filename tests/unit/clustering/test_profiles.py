"""Profiles: what is refused, and the resources that they become."""

import base64
import json
from typing import Any

import pytest
from tests.unit.clustering.profile_cases import (
    IDENTITY,
    NODE,
    TERMS,
    device,
    inner,
    properties_of,
    refused,
    server,
)

from homeostat.clustering.decisions.definitions import Definition
from homeostat.clustering.decisions.profiles import (
    PROFILE_TYPES,
    SERVER_PROFILE,
    STACK_PROFILE,
    Terms,
    check_named_profile,
    check_profile,
    check_same_type,
    define,
    node_metadata,
)
from homeostat.model.errors import Rejected
from homeostat.resources.registry import type_of
from homeostat.templates import compile_template


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, {}),
        ({"name": "web"}, {"name": "web"}),
        ({"auto_disk_config": "false"}, {"diskConfig": "MANUAL"}),
        ({"user_data": "#!/bin/sh"}, {"user_data": "#!/bin/sh"}),
        ({"metadata": {"a": "b"}}, {"metadata": {"a": "b", **NODE}}),
        ({"metadata": {"cluster_id": "mine"}}, {"metadata": NODE}),
        ({"metadata": None}, {"metadata": NODE}),
        (
            {"availability_zone": "z", "key_name": "k", "config_drive": True, "admin_pass": "p"},
            {"availability_zone": "z", "key_name": "k", "config_drive": True, "admin_pass": "p"},
        ),
        ({"scheduler_hints": {"group": "g"}}, {"scheduler_hints": {"group": "g"}}),
        ({"security_groups": ["a", "b"]}, {"security_groups": ["a", "b"]}),
        (
            {"security_groups": ["a"], "networks": [{"network": "n"}]},
            {"security_groups": ["a"], "networks": [{"network": "n"}]},
        ),
        ({"networks": []}, {}),
        (
            {
                "networks": [
                    {"network": "n", "fixed_ip": "10.0.0.3", "subnet": "s", "vnic_type": "direct"},
                    {"port": "p"},
                ]
            },
            {
                "networks": [
                    {
                        "network": "n",
                        "fixed_ip": "10.0.0.3",
                        "subnet": "s",
                        "port_extra_properties": {"binding:vnic_type": "direct"},
                    },
                    {"port": "p"},
                ]
            },
        ),
        ({"personality": [{"path": "/a", "contents": "text"}]}, {"personality": {"/a": "text"}}),
        (
            {"personality": [{"path": "/a", "contents": base64.b64encode("é\n".encode()).decode()}]},
            {"personality": {"/a": "é\n"}},
        ),
        (
            {"block_device_mapping_v2": [device(uuid="v", boot_index=0, device_type="disk", disk_bus="virtio")]},
            {
                "block_device_mapping_v2": [
                    {"volume_id": "v", "volume_size": 4, "boot_index": 0, "device_type": "disk", "disk_bus": "virtio"}
                ]
            },
        ),
        (
            {
                "block_device_mapping_v2": [
                    device(source_type="image", uuid="i", volume_type="fast", delete_on_termination=True),
                    device(source_type="snapshot", uuid="s", device_name="vdb"),
                    device(source_type="blank", destination_type="local", guest_format="swap", volume_size=512),
                    device(source_type="blank", destination_type="local", guest_format="ext4"),
                    device(source_type="image", destination_type="local", uuid="linux", boot_index=0),
                ]
            },
            {
                "block_device_mapping_v2": [
                    {
                        "image": "i",
                        "volume_size": 4,
                        "volume_type": "fast",
                        "delete_on_termination": True,
                        "boot_index": -1,
                    },
                    {"snapshot_id": "s", "volume_size": 4, "device_name": "vdb", "boot_index": -1},
                    {"swap_size": 512},
                    {"ephemeral_size": 4, "ephemeral_format": "ext4"},
                ]
            },
        ),
        (
            {
                "image": None,
                "block_device_mapping_v2": [device(source_type="image", destination_type="local", uuid="i")],
            },
            {"image": "i"},
        ),
    ],
)
def test_a_server_profile_becomes_a_server(properties: dict[str, Any], expected: dict[str, Any]) -> None:
    definition = define(check_profile(server(**properties)), TERMS)
    common = {
        "flavor": "small",
        "image": "linux",
        "name": "node-abc",
        "metadata": NODE,
        "diskConfig": "AUTO",
        "user_data_format": "RAW",
    }
    assert definition == Definition({"type": "OS::Nova::Server", "properties": {**common, **expected}})
    assert type_of("OS::Nova::Server").check(properties_of(definition))


def test_terms_of_policies_come_before_those_of_the_profile() -> None:
    profile = check_profile(server(availability_zone="z", scheduler_hints={"same_host": ["x"], "group": "g"}))
    placed = define(profile, Terms("n", NODE, zone="z2", server_group="g2")).resource["properties"]
    assert placed["availability_zone"] == "z2"
    hints = type_of("OS::Nova::Server").spec(type_of("OS::Nova::Server").complete(placed), "n")["scheduler_hints"]
    assert hints == {"same_host": ["x"], "group": "g2"}
    elsewhere = define(profile, Terms("n", NODE, server_group="g2", region="r")).resource["properties"]
    assert "g2" not in str(elsewhere), "a server group is in the region of the cluster"


def test_metadata_of_a_node_without_a_cluster() -> None:
    assert node_metadata("n") == {"cluster_node_id": "n"}
    assert node_metadata("n", "c", 3) == {"cluster_node_id": "n", "cluster_id": "c", "cluster_node_index": "3"}


@pytest.mark.parametrize(
    ("properties", "networks", "beside", "groups"),
    [
        (
            {"networks": [{"network": "n", "floating_network": "ext"}], "security_groups": ["g"]},
            [{"port": "(port0)"}],
            {
                "port0": {"type": "OS::Neutron::Port", "network": "n", "security_groups": ["g"]},
                "address0": {"type": "OS::Neutron::FloatingIP", "floating_network": "ext", "port_id": "(port0)"},
            },
            None,
        ),
        (
            {
                "networks": [{"port": "p", "floating_network": "ext", "floating_ip": "1.2.3.4"}],
                "security_groups": ["g"],
            },
            [{"port": "p"}],
            {
                "address0": {
                    "type": "OS::Neutron::FloatingIP",
                    "floating_network": "ext",
                    "port_id": "p",
                    "floating_ip_address": "1.2.3.4",
                }
            },
            None,
        ),
        (
            {
                "networks": [
                    {"network": "a", "security_groups": ["s"], "fixed_ip": "10.0.0.3", "subnet": "x"},
                    {"network": "b", "vnic_type": "macvtap"},
                ],
                "security_groups": ["g"],
            },
            [{"port": "(port0)"}, {"port": "(port1)"}],
            {
                "port0": {
                    "type": "OS::Neutron::Port",
                    "network": "a",
                    "security_groups": ["s"],
                    "fixed_ips": [{"subnet": "x", "ip_address": "10.0.0.3"}],
                },
                "port1": {
                    "type": "OS::Neutron::Port",
                    "network": "b",
                    "security_groups": ["g"],
                    "binding:vnic_type": "macvtap",
                },
            },
            None,
        ),
        (
            {"networks": [{"network": "a", "security_groups": ["s"]}, {"network": "b"}]},
            [{"port": "(port0)"}, {"network": "b"}],
            {"port0": {"type": "OS::Neutron::Port", "network": "a", "security_groups": ["s"]}},
            None,
        ),
    ],
)
def test_addresses_and_ports_stand_beside_the_server(
    properties: dict[str, Any], networks: Any, beside: dict[str, Any], groups: Any
) -> None:
    definition = define(check_profile(server(**properties, metadata={"a": "b"})), TERMS)
    assert definition.server == "server"
    text = definition.files[definition.resource["type"]]
    template = json.loads(text)
    resources = {name: {"type": each["type"], **each["properties"]} for name, each in template["resources"].items()}
    written = json.loads(json.dumps(resources), object_hook=lambda each: _reference(each))
    made = written.pop("server")
    assert (made["networks"], written, made.get("security_groups")) == (networks, beside, groups)
    assert inner(definition)["server"]["metadata"] == {"a": "b", **NODE}
    assert inner(definition)["server"]["name"] == "node-abc"


def _reference(value: dict[str, Any]) -> Any:
    return f"({value['get_resource']})" if set(value) == {"get_resource"} else value


def test_an_empty_volume_stands_beside_the_server() -> None:
    devices = [
        device(source_type="blank", volume_type="fast", boot_index=1),
        device(source_type="blank", delete_on_termination=True),
    ]
    definition = define(check_profile(server(block_device_mapping_v2=devices)), TERMS)
    template = json.loads(definition.files[definition.resource["type"]])["resources"]
    assert template["volume0"] == {
        "type": "OS::Cinder::Volume",
        "properties": {"size": 4, "volume_type": "fast"},
        "deletion_policy": "Retain",
    }
    assert template["volume1"] == {"type": "OS::Cinder::Volume", "properties": {"size": 4}}
    assert template["server"]["properties"]["block_device_mapping_v2"] == [
        {"volume_id": {"get_resource": "volume0"}, "boot_index": 1},
        {"volume_id": {"get_resource": "volume1"}, "boot_index": -1},
    ]
    assert set(inner(definition)) == {"server", "volume0", "volume1"}


def test_all_nodes_of_a_profile_share_one_file() -> None:
    profile = check_profile(server(networks=[{"network": "n", "floating_network": "ext"}]))
    first, second = define(profile, TERMS), define(profile, Terms("other", node_metadata("n-2", "c-1", 8)))
    assert first.files == second.files
    assert first.resource["properties"] != second.resource["properties"]


def test_a_server_in_another_region_is_a_stack_there() -> None:
    profile = check_profile(server(context={"region_name": "north"}, scheduler_hints={"group": "g"}))
    definition = define(profile, TERMS)
    assert (definition.resource["type"], definition.files, definition.server) == ("OS::Heat::Stack", {}, "server")
    properties = definition.resource["properties"]
    assert properties["context"] == {"region_name": "north"}
    made = compile_template(properties["template"], identity=IDENTITY, parameters=properties["parameters"])
    assert made.definitions["server"].properties["scheduler_hints"] == {"group": "g"}
    assert type_of("OS::Heat::Stack").check(properties_of(definition))
    moved = define(profile, Terms("n", NODE, region="south"))
    assert moved.resource["properties"]["context"] == {"region_name": "south"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"flavor": None}, "ESchema: Required spec item 'flavor' not provided (at properties)"),
        ({"image": None}, "InvalidSpec: Neither image nor a bootable volume is given"),
        (
            {"image": None, "block_device_mapping_v2": [device(uuid="v")]},
            "InvalidSpec: Neither image nor a bootable volume is given; set image, or a device with boot_index 0",
        ),
        ({"networks": [{}]}, "InvalidSpec: One of 'port' and 'network' must be provided (at properties.networks[0])"),
        (
            {"networks": [{"port": "p", "fixed_ip": "10.0.0.1"}]},
            "InvalidSpec: The 'port' property and the 'fixed_ip' property cannot be specified at the same time (at ",
        ),
        ({"networks": [{"network": "n", "floating_ip": "1.2.3.4"}]}, "InvalidSpec: Must specify a network to create "),
        ({"networks": [{"network": "n", "fixed_ip": "x"}]}, "InvalidSpec: "),
        (
            {"networks": [{"network": "n", "vnic_type": "x"}]},
            "ESchema: 'x' must be one of the allowed values: normal, ",
        ),
        (
            {"context": {"region": "x"}},
            "InvalidSpec: Some keys in 'context' are invalid: ['region']; there is region_n",
        ),
        ({"context": {"region_name": {"get_file": "x"}}}, "InvalidSpec: The name of a region must be a text (at prope"),
        ({"metadata": {"get_param": "x"}}, "InvalidSpec: 'get_param' alone in a map would be a function of templates"),
        ({"metadata": {"a": {"b": [{"get_file": "x"}]}}}, "InvalidSpec: 'get_file' alone in a map would be a function"),
        ({"scheduler_hints": {"get_attr": ["a", "b"]}}, "InvalidSpec: 'get_attr' alone in a map would be a function"),
        (
            {"personality": [{"path": "get_file", "contents": "x"}]},
            "InvalidSpec: 'get_file' alone in a map would be a ",
        ),
        (
            {"personality": [{"path": "/a", "contents": "x"}] * 2},
            "InvalidSpec: Two files have the same path (at properties.personality)",
        ),
        ({"personality": [{"path": "/a"}]}, "ESchema: Required spec item 'contents' not provided (at properties.perso"),
        ({"block_device_mapping_v2": [device()]}, "InvalidSpec: source_type volume needs a uuid (at properties.block_"),
        (
            {"block_device_mapping_v2": [device(source_type="x")]},
            "ESchema: 'x' must be one of the allowed values: image",
        ),
        (
            {"block_device_mapping_v2": [device(uuid="v", destination_type="local")]},
            "InvalidSpec: source_type volume goes with destination_type volume only (at ",
        ),
        (
            {"block_device_mapping_v2": [device(uuid="other", source_type="image", destination_type="local")]},
            "InvalidSpec: A server has one local disk from an image, with boot_index 0 (at ",
        ),
        (
            {"block_device_mapping_v2": [device(uuid="v", disk_bus="warp")]},
            "InvalidSpec: 'warp' is not an allowed value",
        ),
        ({"colour": "red"}, "ESchema: Unrecognizable spec item 'colour' (at properties; there is admin_pass, "),
    ],
)
def test_a_wrong_server_profile_is_refused(properties: dict[str, Any], message: str) -> None:
    assert refused(server(**properties)).startswith(message)


def test_a_container_is_refused_with_the_reason() -> None:
    spec = {"type": "container.dockerinc.docker", "version": "1.0", "properties": {"image": "x"}}
    assert refused(spec).startswith("InvalidSpec: The profile_type 'container.dockerinc.docker-1.0' is not supported: ")
    assert "container" not in str(PROFILE_TYPES.listed((1, 5)))


def test_what_is_stored_has_the_name_in_its_error() -> None:
    with pytest.raises(Rejected) as found:
        check_named_profile("web", server(flavor=None))
    assert found.value.fault == "InvalidSpec"
    assert str(found.value).startswith("Failed in creating profile web: Required spec item 'flavor' not provided")
    with pytest.raises(Rejected) as found:
        check_named_profile("web", {**server(), "version": "9"})
    assert (found.value.fault, str(found.value)) == (
        "ResourceNotFound",
        "The profile_type 'os.nova.server-9' could not be found.",
    )


def test_another_type_of_profile_is_refused() -> None:
    check_same_type(SERVER_PROFILE, SERVER_PROFILE)
    with pytest.raises(Rejected) as found:
        check_same_type(SERVER_PROFILE, STACK_PROFILE, "node")
    assert found.value.fault == "BadRequest"
    assert str(found.value).startswith("Cannot update a node to a different profile type, operation aborted.")


@pytest.mark.parametrize("name", [SERVER_PROFILE, STACK_PROFILE])
def test_types_of_profiles_are_described(name: str) -> None:
    shown = PROFILE_TYPES.shown(name, (1, 14))
    assert shown["schema"]["context"]["type"] == "Map"
    assert shown["support_status"]["1.0"] == [{"status": "SUPPORTED", "since": "2016.04"}]


def test_operations_of_servers_and_stacks() -> None:
    operations = PROFILE_TYPES.operations(SERVER_PROFILE)
    assert len(operations) == 14
    assert operations["pause"] == {"description": "Pause the server.", "parameters": {}}
    assert operations["reboot"]["parameters"]["type"]["default"] == "SOFT"
    assert set(PROFILE_TYPES.operations(STACK_PROFILE)) == {"abandon"}
