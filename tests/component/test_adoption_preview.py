"""Previews of adoptions: what they say is what the adoption then does, and they touch nothing (CV16)."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from homeostat.clouds.simulated import Faults
from homeostat.model.errors import Rejected
from homeostat.planner.report.preview import ResourcePreview
from homeostat.resources.schema import UNKNOWN
from homeostat.services.adoption_preview import AdoptionPreview
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import all_of
from homeostat.services.quotas import Quotas
from homeostat.store import schema
from tests.component.adopted import CHILD, VALUE, document, entry, foreign
from tests.component.running import PROJECT, Service, condition, group, handle, server, template, volume

Wire = dict[str, Any]


def preview(service: Service, source: Wire, name: str = "moved", **options: Any) -> AdoptionPreview:
    return service.moving.preview(PROJECT, name, StackRequest(**options), source)


def notes(found: AdoptionPreview) -> dict[str, ResourcePreview]:
    """Path of a resource -> what becomes of it."""
    return {".".join((*each.path, note.name)): note for each, note in all_of(found.preview)}


def fates(found: AdoptionPreview) -> dict[str, str]:
    return {path: note.fate.value for path, note in notes(found).items()}


def obstacles(found: AdoptionPreview) -> dict[str, tuple[str, str]]:
    return {".".join((*each.path, each.name)): (each.obstacle.value, each.reason) for each in found.findings}


def shown(service: Service) -> dict[str, Wire]:
    """Every thing in the cloud."""
    return {id: dict(thing) for id, thing in service.cloud.things().items()}


# -- what is said is what is done --------------------------------------------------------------------------------------


@dataclass
class Moving:
    """A document to be made of things that are there, and what becomes of its resources.

    there — resource -> kind and object of its thing. changed — resource -> fields that were changed outside.
    """

    name: str
    resources: Wire
    there: dict[str, tuple[str, Wire]]
    expected: dict[str, str]
    changed: dict[str, Wire] = field(default_factory=dict)


SERVER = ("server", {"image": "i", "flavor": "small"})
VOLUME = ("volume", {"size": 1})
CASES = [
    Moving("as it is", {"web": server(), "disk": volume()}, {"web": SERVER, "disk": VOLUME}, {}),
    Moving(
        "what differs is mended",
        {"disk": volume(description="ours"), "web": server()},
        {"disk": ("volume", {"size": 1, "description": "theirs"}), "web": SERVER},
        {"disk": "updated"},
    ),
    Moving(
        "what is stopped is started",
        {"web": server()},
        {"web": SERVER},
        {"web": "updated"},
        {"web": {"status": "stopped"}},
    ),
    Moving(
        "what is broken is made again, and so is what reads it",
        {"web": server(), "says": {"type": VALUE, "properties": {"value": {"get_resource": "web"}}}},
        {"web": SERVER},
        {"web": "replaced", "says": "added"},
        {"web": {"status": "error"}},
    ),
    Moving(
        "what is not in the document is made", {"disk": volume(), "new": volume()}, {"disk": VOLUME}, {"new": "added"}
    ),
    Moving(
        "what reads another one's values is as it is",
        {"disk": volume(), "web": server(metadata={"disk": {"get_resource": "disk"}})},
        {"disk": VOLUME, "web": ("server", {"image": "i", "flavor": "small", "metadata": {"disk": "volume-1"}})},
        {},
    ),
]
TYPES = {"server": "OS::Nova::Server", "volume": "OS::Cinder::Volume"}


def become(before: dict[str, tuple[str, Wire]], after: dict[str, tuple[str, Wire]]) -> dict[str, str]:
    """What became of resources, by their things before and after."""
    found = dict.fromkeys(after.keys() - before.keys(), "added")
    for name in before.keys() & after.keys():
        if before[name][0] != after[name][0]:
            found[name] = "replaced"
        elif before[name][1] != after[name][1]:
            found[name] = "updated"
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.name)
def test_what_is_said_is_what_is_done(case: Moving) -> None:
    service = Service()
    ids = {name: foreign(service, kind, **spec) for name, (kind, spec) in case.there.items()}
    for name, fields in case.changed.items():
        service.cloud.change(ids[name], **fields)
    entries = {name: entry(name, TYPES[case.there[name][0]], id) for name, id in ids.items()}
    source, before = document(case.resources, entries), shown(service)

    found = preview(service, source)
    assert {name: fate for name, fate in fates(found).items() if fate != "unchanged"} == case.expected
    assert not found.findings
    assert shown(service) == before

    stack_id = service.adopt(source)
    service.rest()
    service.live(100.0)
    after = {
        row.name: (row.handle, shown(service).get(row.handle, {}))
        for row in service.rows(stack_id)
        if row.action != "DELETE"
    }
    assert become({name: (id, before[id]) for name, id in ids.items()}, after) == case.expected


def test_a_difference_is_shown_as_it_is_there_and_as_it_would_be() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1, description="theirs")
    found = preview(
        service, document({"disk": volume(description="ours")}, {"disk": entry("disk", TYPES["volume"], disk)})
    )
    note = notes(found)["disk"]
    assert (note.changed, note.before["description"], note.after["description"]) == (("description",), "theirs", "ours")
    assert note.row is not None
    assert note.row.handle == disk


# -- what cannot be adopted --------------------------------------------------------------------------------------------


def test_what_is_not_there_is_missing_and_what_reads_it_is_shown() -> None:
    service = Service()
    web = foreign(service, "server", image="i", flavor="small", metadata={"disk": "volume-999"})
    resources = {"disk": volume(), "web": server(metadata={"disk": {"get_resource": "disk"}})}
    entries = {"disk": entry("disk", TYPES["volume"], "volume-999"), "web": entry("web", TYPES["server"], web)}
    found = preview(service, document(resources, entries))
    assert obstacles(found) == {"disk": ("missing", "volume-999 is not in the cloud")}
    assert fates(found) == {"disk": "added", "web": "updated"}
    assert notes(found)["web"].after["metadata"] == {"disk": UNKNOWN}


def test_what_another_stack_has_is_refused() -> None:
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    id = service.row(stack_id, "disk").handle
    free = foreign(service, "volume", size=1)
    entries = {
        "disk": entry("disk", TYPES["volume"], id),
        "one": entry("one", TYPES["volume"], free),
        "two": entry("two", TYPES["volume"], free),
    }
    source = document({"disk": volume(), "one": volume(), "two": volume()}, entries)
    assert obstacles(preview(service, source)) == {
        "disk": ("refused", f"{id} is disk of stack web already: abandon that first, or take it out of the document"),
        "two": ("refused", f"{free} is that of one, too"),
    }
    with pytest.raises(Rejected):
        service.adopt(source)


def test_all_that_the_cloud_does_not_offer_is_named() -> None:
    service = Service()
    web = foreign(service, "server", image="i", flavor="small")
    resources = {"web": server(), "disk": volume(), "more": volume()}
    entries = {name: entry(name, TYPES["volume"], f"volume-{name}") for name in ("disk", "more")}
    entries["web"] = entry("web", TYPES["server"], web)
    service.cloud.kinds = service.cloud.kinds - {"volume"}
    found = preview(service, document(resources, entries))
    why = ("refused", "the cloud simulated+own+clustering has no volume")
    assert obstacles(found) == {"disk": why, "more": why}
    with pytest.raises(Rejected, match="has no volume"):
        service.adopt(document(resources, entries))


def test_what_a_cloud_that_is_away_has_is_not_known() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    found = preview(service, document({"disk": volume()}, {"disk": entry("disk", TYPES["volume"], disk)}))
    (kind, reason) = obstacles(found)["disk"]
    assert kind == "unseen"
    assert reason.startswith(f"it is not known whether {disk} is there: ")
    assert fates(found) == {"disk": "unchanged"}


@pytest.mark.parametrize(
    "types", [("OS::Nova::Nothing", "OS::Nova::Nothing"), ("OS::Cinder::Volume", "OS::Nova::Server")]
)
def test_a_document_that_no_service_could_adopt_is_refused_as_a_whole(types: tuple[str, str]) -> None:
    service = Service()
    wanted, exported = types
    resources = {"disk": {"type": wanted, "properties": {"size": 1}}}
    with pytest.raises(Rejected):
        preview(service, document(resources, {"disk": entry("disk", exported, "volume-1")}))


def test_a_name_that_is_taken_is_refused() -> None:
    service = Service()
    service.create({"disk": volume()}, name="web")
    with pytest.raises(Rejected, match="already exists"):
        preview(service, document({}, {}), "web")


def test_it_is_bounded_and_can_be_switched_off() -> None:
    service = Service()
    source = document({name: volume() for name in "abc"}, {})
    service.stack_service.quotas = Quotas(previewed_max=2)
    with pytest.raises(Rejected, match="at most 2 resources"):
        preview(service, source)
    service.stack_service.quotas = Quotas(adopt=False)
    with pytest.raises(Rejected, match="switched it off"):
        preview(service, source)


# -- nested stacks, groups, records ------------------------------------------------------------------------------------


def test_nested_stacks_and_groups_are_looked_into() -> None:
    service = Service()
    inner = foreign(service, "volume", size=1, description="by hand")
    ids = {name: foreign(service, "server", image="i", flavor="small", name=f"m{name}") for name in ("0", "2", "3")}
    service.cloud.change(ids["3"], status="stopped")
    child = {"type": "child.yaml", "properties": {"text": "inside"}}
    source = document(
        {"child": child, "grp": group(4), "all": volume(description={"get_attr": ["child", "said"]})},
        {
            "child": document({"inner": volume()}, {"inner": entry("inner", TYPES["volume"], inner)}),
            "grp": document({}, {name: entry(name, TYPES["server"], id) for name, id in ids.items()}),
            "all": entry("all", TYPES["volume"], foreign(service, "volume", size=1, description=inner)),
        },
        files={
            "child.yaml": "{heat_template_version: 2018-08-31, parameters: {text: {type: string}}, resources: {inner: "
            "{type: OS::Cinder::Volume, properties: {size: 1, description: {get_param: text}}}}, "
            "outputs: {said: {value: {get_resource: inner}}}}"
        },
    )
    before = shown(service)
    found = fates(preview(service, source))
    assert found == {
        "child": "unchanged",
        "child.inner": "updated",
        "grp": "unchanged",
        **{f"grp.{name}": "unchanged" for name in ("0", "2")},
        "grp.3": "updated",
        "grp.4": "added",
        "all": "unchanged",
    }
    assert shown(service) == before


def test_a_nested_stack_that_has_nothing_yet_is_made() -> None:
    service = Service()
    source = document({"child": {"type": "child.yaml"}}, {}, files={"child.yaml": CHILD})
    assert fates(preview(service, source)) == {"child": "added", "child.inner": "added"}


def test_what_the_service_keeps_itself_is_made_from_the_document() -> None:
    service = Service()
    word = {"type": "OS::Heat::RandomString"}
    metadata = {"word": {"get_attr": ["word", "value"]}}
    web = foreign(service, "server", image="i", flavor="small", metadata={"word": "XYZ"})
    resources = {"word": word, "handle": handle(), "wait": condition(), "web": server(metadata=metadata)}
    entries = {
        "word": entry("word", "OS::Heat::RandomString", "old-word", resource_data={"value": "XYZ"}),
        "handle": entry("handle", "OS::Heat::WaitConditionHandle", "old-handle"),
        "wait": entry("wait", "OS::Heat::WaitCondition", "old-wait"),
        "web": entry("web", TYPES["server"], web),
    }
    found = preview(service, document(resources, entries))
    assert fates(found) == dict.fromkeys(resources, "unchanged")
    assert not found.findings


def test_it_names_the_tags_that_would_be_written() -> None:
    service = Service()
    net = foreign(service, "network")
    port = foreign(service, "port", network_id=net)
    group_id = foreign(service, "security_group", rules=[])
    rule = foreign(service, "security_group_rule", security_group_id=group_id, protocol="tcp")
    web = foreign(service, "server", image="i", flavor="small")
    resources = {
        "group": {"type": "OS::Neutron::SecurityGroup"},
        "rule": {"type": "OS::Neutron::SecurityGroupRule", "properties": {"security_group": {"get_resource": "group"}}},
        "web": server(),
    }
    ports = f'[{{"id": "{port}"}}]'
    entries = {
        "group": entry("group", "OS::Neutron::SecurityGroup", group_id),
        "rule": entry("rule", "OS::Neutron::SecurityGroupRule", rule),
        "web": entry("web", TYPES["server"], web, resource_data={"internal_ports": ports}),
    }
    found = preview(service, document(resources, entries))
    assert [(name, tag.kind, tag.handle, tag.of) for _, name, tag in found.tags] == [
        ("web", "port", port, web),
        ("rule", "security_group", group_id, rule),
    ]


def test_nothing_is_stored() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1)

    def stored() -> dict[str, int]:
        with service.db.read() as tx:
            return {table.name: len(list(tx.execute(table.select()))) for table in schema.metadata.sorted_tables}

    before = stored()
    preview(service, document({"disk": volume(size=2)}, {"disk": entry("disk", TYPES["volume"], disk)}))
    assert stored() == before


def test_parameters_and_template_of_the_request_take_precedence() -> None:
    service = Service()
    disk = foreign(service, "volume", size=1, description="theirs")
    source = document({"disk": volume()}, {"disk": entry("disk", TYPES["volume"], disk)})
    other = template({"disk": volume(description="mine")})
    assert fates(preview(service, source)) == {"disk": "unchanged"}
    assert fates(preview(service, source, template=other)) == {"disk": "updated"}
