"""Documents and things that are not adopted."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources.families.wait_conditions import HANDLE
from homeostat.services.quotas import Quotas
from tests.component.adopted import CHILD, document, entry, moved
from tests.component.running import Service, group, handle, volume

# -- refusals ----------------------------------------------------------------------------------------------------------


def test_what_another_stack_has_is_refused() -> None:
    service = Service()
    owner = service.create({"disk": volume()})
    service.rest()
    id = service.row(owner, "disk").handle
    source = document({"mine": volume()}, {"mine": entry("mine", "OS::Cinder::Volume", id)})

    with pytest.raises(Rejected, match=f"resources.mine.resource_id: {id} is disk of stack web already") as refused:
        service.adopt(source)

    assert refused.value.code == 400
    assert [each.name for each in service.stacks()] == ["web"]


def test_what_is_nested_in_another_stack_is_refused_when_it_comes_to_it() -> None:
    service = Service()
    owner = service.create({"disk": volume()})
    service.rest()
    id = service.row(owner, "disk").handle
    nested = document({"inner": volume()}, {"inner": entry("inner", "OS::Cinder::Volume", id)})
    source = document({"child": {"type": "child.yaml"}}, {"child": nested}, files={"child.yaml": CHILD})

    stack_id = service.adopt(source)
    service.rest()

    assert service.state(stack_id) == "ADOPT_FAILED"
    assert "is disk of stack web already" in service.stack(stack_id).reason


DISK = entry("disk", "OS::Cinder::Volume", "volume-1")


DEEP: dict[str, Any] = {"disk": DISK}
for _ in range(8):
    DEEP = {"child": {"resources": DEEP}}


@pytest.mark.parametrize(
    ("wrong", "source"),
    [
        ({"resources": []}, "Invalid adopt data: resources: it must be a map"),
        ({"resources": {"disk": "volume-1"}}, "resources.disk: it must be a map"),
        ({"resources": {"disk": {**DISK, "resource_id": 7}}}, "resources.disk.resource_id: it must be text, not int"),
        ({"resources": {"disk": {**DISK, "resource_id": "x" * 2000}}}, "at most 1024 characters"),
        (
            {"resources": {"disk": {**DISK, "resource_data": []}}},
            "resources.disk.resource_data: it must be a map",
        ),
        ({"resources": {"disk": {**DISK, "type": "OS::Nova::Server"}}}, "resources.disk.type: it is of type"),
        ({"resources": {"other": DISK}}, "resources.other: the template has no such resource"),
        ({"resources": {"disk": {"resources": {"0": DISK}}}}, "resources.disk: a OS::Cinder::Volume is no stack here"),
        ({"resources": DEEP}, "Recursion depth exceeds"),
        ({"resources": {"disk": DISK, "again": DISK}}, "resources.again.resource_id: volume-1 is that of disk, too"),
        ({"environment": {"strange": {}}}, "strange"),
        ({"files": {"a": 1}}, "files.a: it must be text"),
        ({"template": None}, "No template specified"),
        ({"template": {"heat_template_version": "2018-08-31", "resources": {"disk": {"type": "X::Y"}}}}, "X::Y"),
    ],
)
def test_a_document_that_is_wrong_is_refused_with_its_place(wrong: dict[str, Any], source: str) -> None:
    service = Service()
    given = {**document({"disk": volume(), "again": volume()}, {"disk": DISK}), **wrong}

    with pytest.raises(Rejected) as refused:
        service.adopt(given)

    assert source in str(refused.value)
    assert refused.value.code == 400
    assert not service.stacks()


@pytest.mark.parametrize("text", ["['Test']", "{", 7, ["a"]])
def test_what_is_no_document_is_refused(text: Any) -> None:
    with pytest.raises(Rejected, match=r"(?i)adopt data") as refused:
        Service().adopt(text)
    assert refused.value.code == 400


def test_a_group_needs_a_document_of_its_own() -> None:
    service = Service()
    source = document({"grp": group(1)}, {"grp": entry("grp", "OS::Heat::ResourceGroup", "some-stack")})

    with pytest.raises(Rejected, match=r"resources.grp: a OS::Heat::ResourceGroup is a stack of its own here"):
        service.adopt(source)


def test_too_many_resources_are_refused() -> None:
    service = Service()
    service.stack_service.quotas = Quotas(resources_max=1)

    with pytest.raises(Rejected, match="more than 1 resources"):
        service.adopt(document({"a": volume()}, {"a": DISK, "b": DISK}))


def test_the_operator_may_switch_it_off() -> None:
    service = Service()
    service.stack_service.quotas = Quotas(adopt=False)

    with pytest.raises(Rejected, match="Stack Adopt is not supported") as refused:
        service.adopt(document({}, {}))
    assert refused.value.fault == "NotSupported"


def test_records_of_handles_do_not_stay_behind() -> None:
    service = Service()
    source = moved(service, service.create({"handle": handle()}))
    again = service.adopt(source)
    service.rest()
    service.delete(again)
    service.rest()

    assert not service.records_of(HANDLE)
