"""Environments: types that stand for other types, in stacks, groups, chains and nested stacks."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from tests.component.running import Service, double, group, server, volume

WEB = """
heat_template_version: rocky
parameters: {size: {type: number, default: 1}}
resources:
  disk: {type: My::Disk, properties: {size: {get_param: size}}}
outputs:
  label: {value: {get_resource: disk}}
"""
FLAT = WEB.replace("My::Disk", "OS::Cinder::Volume")
FACADE = """
heat_template_version: rocky
resources:
  disk:
    type: OS::Cinder::Volume
    deletion_policy: {resource_facade: deletion_policy}
    properties: {size: 1, metadata: {resource_facade: metadata}}
"""


def mapped(**entries: Any) -> dict[str, Any]:
    """An environment; single underscores in names of types stand for pairs of colons."""
    return {"resource_registry": {name.replace("_", "::"): value for name, value in entries.items()}}


def disk(**properties: Any) -> dict[str, Any]:
    return {"type": "My::Disk", "properties": {"size": 1, **properties}}


def created(resources: dict[str, Any], **options: Any) -> tuple[Service, str]:
    service = Service()
    stack_id = service.create(resources, **options)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def event_types(service: Service, stack_id: str) -> set[str]:
    with service.db.read() as tx:
        rows = tx.exec_driver_sql("select distinct type from event where stack_id = ?", (stack_id,))
        return {each.type for each in rows}


def test_users_see_the_type_they_wrote() -> None:
    service, stack_id = created({"d": disk()}, environment=mapped(My_Disk="OS::Cinder::Volume"))
    row = service.row(stack_id, "d")
    assert (row.type, row.template_type) == ("OS::Cinder::Volume", "My::Disk")
    assert event_types(service, stack_id) == {"My::Disk", "OS::Heat::Stack"}
    assert len(service.cloud.things("volume")) == 1


def test_a_former_name_is_the_type_itself() -> None:
    service, stack_id = created({"net": {"type": "OS::Quantum::Net"}})
    assert service.row(stack_id, "net").type == "OS::Neutron::Net"


def test_another_mapping_is_another_type() -> None:
    service, stack_id = created({"d": disk()}, environment=mapped(My_Disk="OS::Cinder::Volume"))
    service.update(stack_id, {"d": double()}, environment={})
    service.rest()
    service.update(stack_id, {"d": {"type": "My::Disk"}}, environment=mapped(My_Disk="OS::Heat::TestResource"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.cloud.things("volume") == {}
    assert service.row(stack_id, "d").template_type == "My::Disk"


def test_a_mapping_that_says_the_same_replaces_nothing() -> None:
    service, stack_id = created({"d": disk()}, environment=mapped(My_Disk="OS::Cinder::Volume"))
    handle = service.row(stack_id, "d").handle
    service.update(stack_id, {"d": volume()}, environment={})
    service.rest()
    row = service.row(stack_id, "d")
    assert (row.handle, row.template_type) == (handle, None)


def test_a_type_may_be_a_template_which_contains_the_type_itself() -> None:
    """Within it the entry that led to it does not hold."""
    text = WEB.replace("My::Disk", "OS::Cinder::Volume")
    environment = {"resource_registry": {"OS::Cinder::Volume": "web.yaml"}}
    service, stack_id = created(
        {"v": {"type": "OS::Cinder::Volume"}}, environment=environment, files={"web.yaml": text}
    )
    assert service.row(stack_id, "v").type == "web.yaml"
    assert service.row(service.child().id, "disk").type == "OS::Cinder::Volume"
    assert len(service.cloud.things("volume")) == 1


def test_nested_stacks_have_the_other_entries_and_those_for_their_own_resources() -> None:
    environment = mapped(My_Web="web.yaml", My_Disk="OS::Heat::TestResource")
    environment["resource_registry"]["resources"] = {"a": {"disk": {"My::Disk": "OS::Cinder::Volume"}}}
    resources = {"a": {"type": "My::Web"}, "t": double(value={"get_attr": ["a", "label"]})}
    service, stack_id = created(resources, environment=environment, files={"web.yaml": WEB})
    assert service.row(service.child().id, "disk").type == "OS::Cinder::Volume"
    assert service.row(stack_id, "t").properties["value"] == next(iter(service.cloud.things("volume")))


def test_a_mapping_changed_for_a_nested_stack_alone_reaches_it() -> None:
    files = {"web.yaml": WEB.replace("size: {get_param: size}", "")}
    resources = {"a": {"type": "web.yaml", "properties": {"size": 1}}}
    service, stack_id = created(resources, environment=mapped(My_Disk="OS::Heat::None"), files=files)
    service.update(stack_id, resources, environment=mapped(My_Disk="OS::Heat::TestResource"), files=files)
    service.rest()
    assert service.row(service.child().id, "disk").type == "OS::Heat::TestResource"


def test_defaults_for_all_reach_nested_stacks_when_they_change() -> None:
    files = {"web.yaml": WEB.replace("My::Disk", "OS::Cinder::Volume")}
    service, stack_id = created(
        {"a": {"type": "web.yaml"}}, environment={"parameter_defaults": {"size": 2}}, files=files
    )
    assert service.row(service.child().id, "disk").properties["size"] == 2
    service.update(stack_id, {"a": {"type": "web.yaml"}}, environment={"parameter_defaults": {"size": 3}}, files=files)
    service.rest()
    assert service.row(service.child().id, "disk").properties["size"] == 3


def test_members_of_a_group_are_what_their_type_stands_for() -> None:
    environment = mapped(My_Disk="OS::Cinder::Volume")
    environment["resource_registry"]["resources"] = {"grp": {"1": {"My::Disk": "web.yaml"}}}
    files = {"web.yaml": WEB.replace("My::Disk", "OS::Cinder::Volume")}
    service, stack_id = created({"grp": group(3, disk())}, environment=environment, files=files)
    child = next(each for each in service.stacks() if each.parent_id == stack_id)
    assert [each.type for each in service.rows(child.id)] == ["OS::Cinder::Volume", "web.yaml", "OS::Cinder::Volume"]
    assert {each.template_type for each in service.rows(child.id)} == {"My::Disk"}
    assert len(service.cloud.things("volume")) == 3


def test_members_of_a_scaling_group_are_what_their_type_stands_for() -> None:
    properties = {"min_size": 2, "max_size": 2, "resource": disk()}
    group_of = {"grp": {"type": "OS::Heat::AutoScalingGroup", "properties": properties}}
    service, stack_id = created(group_of, environment=mapped(My_Disk="OS::Cinder::Volume"))
    assert len(service.cloud.things("volume")) == 2
    service.update(stack_id, group_of, environment=mapped(My_Disk="web.yaml"), files={"web.yaml": FLAT})
    service.rest()
    assert {each.type for each in service.rows(service.row(stack_id, "grp").handle)} == {"web.yaml"}


def test_another_mapping_reaches_the_members_of_a_group() -> None:
    service, stack_id = created({"grp": group(2, disk())}, environment=mapped(My_Disk="OS::Cinder::Volume"))
    service.update(stack_id, {"grp": group(2, {"type": "My::Disk"})}, environment=mapped(My_Disk="OS::Heat::None"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {each.type for each in service.rows(service.child().id)} == {"OS::Heat::None"}
    assert service.cloud.things("volume") == {}


def test_members_of_a_chain_are_what_their_types_stand_for() -> None:
    chain = {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["A", "B"]}}
    service, _ = created({"c": chain}, environment=mapped(A="OS::Heat::TestResource", B="OS::Heat::None"))
    types = {each.name: (each.type, each.template_type) for each in service.rows(service.child().id)}
    assert types == {"0": ("OS::Heat::TestResource", "A"), "1": ("OS::Heat::None", "B")}


def test_a_group_without_an_environment_is_made_as_cheaply_as_before() -> None:
    """Nothing of ours gets among its properties, and its stack has no environment to look at."""
    service, stack_id = created({"grp": group(2, server())})
    assert set(service.row(stack_id, "grp").properties) == {"count", "resource_def"}
    with service.db.read() as tx:
        (environment,) = tx.exec_driver_sql("select environment from revision where kind = 'group'").scalars()
    assert environment == "{}"


def test_a_template_reads_the_resource_that_it_stands_for() -> None:
    resources = {
        "t": double(value="blue"),
        "f": {
            "type": "facade.yaml",
            "metadata": {"colour": {"get_attr": ["t", "output"]}},
            "deletion_policy": "Retain",
        },
    }
    service, stack_id = created(resources, files={"facade.yaml": FACADE})
    assert service.row(service.child().id, "disk").properties["metadata"] == {"colour": "blue"}
    assert service.row(service.child().id, "disk").deletion_policy == "Retain"
    resources["f"]["metadata"]["colour"] = "red"
    service.update(stack_id, resources, files={"facade.yaml": FACADE})
    service.rest()
    (kept,) = service.cloud.things("volume").values()
    assert kept["metadata"] == {"colour": "red"}


@pytest.mark.parametrize(
    ("resources", "fault", "message"),
    [
        ({"d": {"type": "No::Such"}}, "StackValidationFailed", "resources.d.type: The Resource Type (No::Such)"),
        ({"d": {"type": "Gone"}}, "StackValidationFailed", 'resources.d: The template "gone.yaml" is not among'),
        ({"w": {"type": "web.yaml", "properties": {"colour": 1}}}, "StackValidationFailed", "Unknown Property colour"),
        ({"w": {"type": "web.yaml", "properties": {"size": "big"}}}, "StackValidationFailed", "resources.w: "),
        (
            {"w": {"type": "web.yaml"}, "t": double(value={"get_attr": ["w", "colour"]})},
            "InvalidTemplateAttribute",
            "resources.t: The Referenced Attribute (w colour) is incorrect.",
        ),
        (
            {"d": volume(), "t": double(value={"get_attr": ["d", "colour"]})},
            "InvalidTemplateAttribute",
            "The Referenced Attribute (d colour) is incorrect.",
        ),
    ],
    ids=["type", "file", "property", "value", "output", "attribute"],
)
def test_what_is_wrong_is_named_before_anything_is_made(resources: dict[str, Any], fault: str, message: str) -> None:
    service = Service()
    with pytest.raises(Rejected) as caught:
        service.begin(
            resources, environment=mapped(Gone="gone.yaml", My_Disk="OS::Cinder::Volume"), files={"web.yaml": WEB}
        )
    assert caught.value.fault == fault
    assert message in str(caught.value)


KEY = "{heat_template_version: rocky, parameters: {name: {type: string}, zone: {type: string, default: z}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KEY, ""),
        (KEY.replace("name:", "label:"), "Required property name for facade OS::Nova::KeyPair missing in provider"),
        (KEY.replace("{type: string}", "{type: json}"), "Property name type mismatch between facade OS::Nova::KeyPair"),
        (KEY.replace(", default: z", ""), "Provider requires property zone unknown in facade OS::Nova::KeyPair"),
    ],
    ids=["fits", "missing", "mismatch", "unknown"],
)
def test_a_template_that_stands_for_a_type_that_there_is_takes_what_that_takes(text: str, message: str) -> None:
    environment = {"resource_registry": {"OS::Nova::KeyPair": "key.yaml"}}
    key = {"k": {"type": "OS::Nova::KeyPair", "properties": {"name": "me"}}}
    try:
        Service().begin(key, environment=environment, files={"key.yaml": text})
        found = ""
    except Rejected as error:
        found = str(error)
    assert message in found
    assert bool(found) == bool(message)


def test_lists_become_text_with_commas() -> None:
    text = """
heat_template_version: rocky
parameters: {names: {type: comma_delimited_list}, tree: {type: json}}
resources: {}
outputs: {names: {value: {get_param: names}}, tree: {value: {get_param: tree}}}
"""
    part = {"type": "part.yaml", "properties": {"names": ["a", None, 3], "tree": [{"k": 1}]}}
    resources = {"p": part, "t": double(value={"list_join": ["/", {"get_attr": ["p", "names"]}]})}
    service, stack_id = created(resources, files={"part.yaml": text})
    assert service.row(stack_id, "t").properties["value"] == "a//3"


def test_what_has_a_type_that_is_not_known_any_more_is_let_go_of_when_asked_twice() -> None:
    service, stack_id = created({"d": double(), "v": volume()})
    with service.db.write() as tx:
        tx.exec_driver_sql("update resource set type = 'Lost::Type' where name = 'd'")
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    assert "its type Lost::Type is not known any more: install the package" in service.stack(stack_id).reason
    service.delete(stack_id)
    service.rest()
    assert service.stack(stack_id).deleted_at is not None
    assert service.cloud.things("volume") == {}


def test_a_type_that_is_not_known_any_more_hinders_nothing_else() -> None:
    service, stack_id = created({"d": double(), "v": volume()})
    with service.db.write() as tx:
        tx.exec_driver_sql("update resource set type = 'Lost::Type' where name = 'd'")
    service.live(120.0)
    service.cloud.vanish(service.row(stack_id, "v").handle)
    service.live(120.0)
    assert len(service.cloud.things("volume")) == 1, "it was brought back"
