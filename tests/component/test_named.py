"""What templates need from outside: services of the cloud, and things that they name."""

from typing import Any

import pytest

from homeostat.clouds.simulated import Faults
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.prerequisites import CACHE_S
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import PROJECT, Service, template

HEAD = {"heat_template_version": "2018-08-31"}
IDENTITY = Identity("None", "None", PROJECT)


def server(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"flavor": "small", "image": "cirros", **properties}}


@pytest.fixture
def service() -> Service:
    service = Service()
    service.cloud.catalogue |= {"image": {"cirros"}, "flavor": {"small"}, "network": {"lan"}, "keypair": ()}
    return service


def refusal(service: Service, resources: dict[str, Any], **options: Any) -> str:
    with pytest.raises(Rejected) as caught:
        service.begin(resources, **options)
    assert caught.value.fault == "StackValidationFailed"
    return str(caught.value)


def test_an_image_that_does_not_exist_is_refused_at_its_place(service: Service) -> None:
    assert refusal(service, {"srv": server(image="gone")}) == (
        "Property error: resources.srv.properties.image: Error validating value 'gone': "
        "The Image (gone) could not be found."
    )
    assert refusal(service, {"srv": server(networks=[{"network": "lan"}, {"network": "wan"}])}) == (
        "Property error: resources.srv.properties.networks[1].network: Error validating value 'wan': "
        "Unable to find network with name or id 'wan'"
    )


def test_what_exists_is_accepted_and_what_the_template_makes_itself(service: Service) -> None:
    service.begin(
        {
            "key": {"type": "OS::Nova::KeyPair", "properties": {"name": "mine"}},
            "net": {"type": "OS::Neutron::Net"},
            "srv": {**server(key_name="mine", networks=[{"network": {"get_resource": "net"}}]), "depends_on": "key"},
        }
    )
    assert "The Key (other) could not be found" in refusal(service, {"srv": server(key_name="other")}, name="second")


def test_members_of_groups_and_nested_templates_count_too(service: Service) -> None:
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 3, "resource_def": server(image="gone")}}
    assert "resources.crowd.properties.resource_def.properties.image" in refusal(service, {"crowd": group})
    inner = "heat_template_version: 2018-08-31\nparameters: {i: {type: string}}\nresources:\n"
    inner += "  srv: {type: OS::Nova::Server, properties: {flavor: small, image: {get_param: i}}}\n"
    nested = {"type": "inner.yaml", "properties": {"i": "gone"}}
    found = refusal(service, {"web": nested}, files={"inner.yaml": inner})
    assert "resources.web.resources.srv.properties.image: Error validating value 'gone'" in found


def parameters(**schemas: Any) -> dict[str, Any]:
    return {**HEAD, "parameters": schemas, "resources": {}}


def begin(service: Service, body: dict[str, Any], **values: Any) -> str:
    return service.stack_service.create(PROJECT, None, "web", StackRequest(body, parameters=values))


def named(constraint: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "constraints": [{"custom_constraint": constraint, **more}]}


def test_parameters_name_things_too(service: Service) -> None:
    body = parameters(image=named("glance.image"))
    with pytest.raises(Rejected, match=r"^Parameter 'image' is invalid: Error validating value 'gone': The Image"):
        begin(service, body, image="gone")
    begin(service, body, image="cirros")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (named("glance.image", description="Take one of ours."), "gone", "Parameter 'p' is invalid: Take one of ours."),
        (named("neutron.network", "comma_delimited_list"), "lan,wan", "with name or id 'wan'"),
        (named("ip_addr"), "here", "Error validating value 'here': it is not an IP address"),
        (named("no.such"), "x", r'"x" does not validate no.such \(constraint not found\)'),
        (named("expiration"), "2001-01-01T00:00:00Z", "the time is over"),
    ],
)
def test_parameters_that_do_not_fit(service: Service, schema: dict[str, Any], value: str, text: str) -> None:
    service.clock.time = 1_700_000_000.0
    with pytest.raises(Rejected, match=text):
        begin(service, parameters(p=schema), p=value)


def test_validation_looks_for_nothing_but_checks_forms(service: Service) -> None:
    service.stack_service.validate(IDENTITY, StackRequest(template({"srv": server(image="gone")})))
    with pytest.raises(Rejected, match="not an IP address"):
        service.stack_service.validate(IDENTITY, StackRequest(parameters(p=named("ip_addr")), parameters={"p": "here"}))


def test_what_was_found_is_believed_for_a_while_and_what_was_not_is_looked_for_again(service: Service) -> None:
    service.begin({"srv": server()})
    service.cloud.catalogue["image"] = ()
    service.begin({"srv": server()}, name="second")
    service.clock.time += CACHE_S + 1
    refusal(service, {"srv": server()}, name="third")
    service.cloud.catalogue["image"] = {"cirros"}
    service.begin({"srv": server()}, name="third")


def test_a_cloud_that_does_not_answer_does_not_hinder_a_new_desired_state(service: Service) -> None:
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    stack_id = service.begin({"srv": server(image="lost")})
    service.cloud.behaviour.faults = Faults()
    service.work()
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_a_type_whose_service_the_cloud_does_not_have_is_refused(service: Service) -> None:
    service.cloud.kinds = service.cloud.kinds - {"volume"}
    body = StackRequest(template({"disk": {"type": "OS::Cinder::Volume", "properties": {"size": 1}}}))
    with pytest.raises(Rejected) as caught:
        service.stack_service.create(PROJECT, None, "web", body)
    assert caught.value.fault == "ResourceTypeUnavailable"
    assert str(caught.value).startswith(
        "resources.disk: HEAT-E99001 Service cinder is not available for resource type OS::Cinder::Volume"
    )
    with pytest.raises(Rejected, match="HEAT-E99001"):
        service.stack_service.validate(IDENTITY, body)
    service.stack_service.validate(IDENTITY, body, ignored={"99001"})
