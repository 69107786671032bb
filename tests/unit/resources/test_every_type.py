"""The life of a resource of every type there is, on the simulated cloud: made, left alone, changed, replaced, removed.

What is made is the example of the reference documentation. A type whose schema alone does not lead to values that fit
has a row in `docs/examples.py`, or in the tables here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from resource_cases import thing
from tests.component.running import PROJECT, Service

from docs import examples, type_pages
from homeostat.builtin.server_agents import OWN
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.clouds.simulated import SimulatedCloud, Weather
from homeostat.model.errors import Rejected
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status
from homeostat.resources.base import ResourceType, Thing
from homeostat.resources.comparison import equal
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.families.retired import RetiredType
from homeostat.resources.registry import resource_type, types
from homeostat.resources.schema import UNKNOWN, Property, ValueType

RETIRED = sorted(name for name, kind in types().items() if isinstance(kind, RetiredType))
LIVING = sorted(types().keys() - set(RETIRED))
OUTSIDE = [name for name in LIVING if types()[name].kind in SimulatedCloud.kinds]
PATIENCE_S = 120.0
LEFT = object()
"""In `CHANGED`: a property that is left as it is."""

ROLES = [{"role": "my-role", "project": "my-project"}]
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "AWS::AutoScaling::AutoScalingGroup": {
        "LaunchConfigurationName": LEFT,
        "MinSize": 2,
        "MaxSize": 4,
        "DesiredCapacity": 2,
    },
    "AWS::CloudFormation::Stack": {"TemplateURL": LEFT, "Parameters": {"key": "other"}},
    "AWS::AutoScaling::ScalingPolicy": {"AdjustmentType": "PercentChangeInCapacity"},
    "AWS::EC2::EIPAssociation": {"AllocationId": LEFT, "NetworkInterfaceId": LEFT, "EIP": "192.0.2.11"},
    "AWS::EC2::Instance": {"NetworkInterfaces": LEFT},
    "OS::Heat::AutoScalingGroup": {
        "min_size": 2,
        "max_size": 4,
        "desired_capacity": 2,
        "resource": {"type": "OS::Heat::TestResource"},
    },
    "AWS::ElasticLoadBalancing::LoadBalancer": {"SecurityGroups": LEFT},
    "OS::Heat::InstanceGroup": {"LaunchConfigurationName": LEFT},
    "OS::Heat::ScalingPolicy": {"adjustment_type": "percent_change_in_capacity"},
    "OS::Neutron::LBaaS::L7Policy": {"action": "REDIRECT_TO_POOL", "redirect_url": LEFT},
    "OS::Aodh::CompositeAlarm": {"composite_rule": {"operator": "and", "rules": [{"type": "a"}, {"type": "b"}]}},
    "OS::Glance::WebImage": {
        "kernel_id": examples.ID_A,
        "ramdisk_id": examples.ID_B,
        "visibility": "shared",
        "protected": LEFT,  # it could not be deleted any more
    },
    "OS::Heat::DeployedServer": {"software_config_transport": "POLL_TEMP_URL"},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::RandomString", "OS::Heat::TestResource"]},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::TestResource"}},
    "OS::Heat::SoftwareDeployment": {"config": LEFT},
    "OS::Heat::StructuredDeployment": {"config": LEFT},
    "OS::Heat::Stack": {
        "template": "{heat_template_version: rocky, parameters: {changed: {type: string, default: no}}}"
    },
    "OS::Heat::TestResource": {"fail": LEFT, "update_replace": LEFT},
    "OS::Keystone::Group": {"roles": ROLES},
    "OS::Keystone::GroupRoleAssignment": {"roles": ROLES},
    "OS::Keystone::User": {"roles": ROLES},
    "OS::Keystone::UserRoleAssignment": {"roles": ROLES},
    "OS::Mistral::Workflow": {"type": LEFT, "tasks": [{"name": "wait", "action": "std.noop"}]},
    "OS::Neutron::FloatingIPPortForward": {"internal_ip_address": "192.0.2.11"},
    "OS::Neutron::NetworkGateway": {"connections": [{"network": "my-network"}]},
    "OS::Neutron::Port": {"no_fixed_ips": LEFT},
    "OS::Nova::Flavor": {"tenants": LEFT},
    "OS::Nova::Server": {
        "networks": [{"network": "my-network"}],
        "flavor_update_policy": LEFT,
        "image_update_policy": "REBUILD_PRESERVE_EPHEMERAL",
        "software_config_transport": "POLL_TEMP_URL",
        "user_data": LEFT,
    },
    "OS::Octavia::AvailabilityZoneProfile": {"availability_zone_data": '{"b": 2}'},
    "OS::Octavia::FlavorProfile": {"flavor_data": '{"b": 2}'},
    "OS::Octavia::L7Policy": {"action": "REDIRECT_TO_POOL", "redirect_url": LEFT},
    "OS::Trove::Instance": {
        "databases": [{"name": "shop"}],
        "users": [{"name": "reader", "password": "wordpass", "databases": ["shop"]}],
    },
    "OS::Zaqar::Subscription": {"subscriber": "https://example.org/hook"},
    "OS::Zun::Container": {"networks": [{"network": "my-network"}]},
}
"""Type -> values of properties that may change in place, where rules ask for others than the schema leads to."""
FIXED: Mapping[str, str] = {
    "AWS::CloudFormation::WaitCondition": "Timeout",
    "OS::Heat::SwiftSignal": "timeout",
    "OS::Heat::WaitCondition": "timeout",
}
"""Type -> the property that is changed to have it replaced, where the first one that fits will not do."""


class Watched(SimulatedCloud):
    """Counts what changes it."""

    def __init__(self, now: Any) -> None:
        super().__init__(now, Weather(build_s=2.0, delete_s=1.0))
        self.calls: list[str] = []

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self.calls += [f"create {kind}"] * len(intents)
        return super().create(kind, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        self.calls += [f"update {kind}"] * len(changes)
        return super().update(kind, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        self.calls += [f"delete {kind}"] * len(handles)
        return super().delete(kind, handles)


# -- values ------------------------------------------------------------------------------------------------------------


def other(prop: Property, name: str, now: Any) -> Any:
    """A value that fits the property and is not `now`."""
    for constraint in prop.constraints:
        ((rule, bounds),) = constraint.wire.items()
        if rule == "allowed_values":
            another = next(each for each in bounds if each not in (now if isinstance(now, list) else [now]))
            return [another] if prop.kind is ValueType.LIST else another
        if rule == "range":
            low = bounds.get("min", bounds.get("max", 0) - 1)
            return low + 1 if now == low else low
    match prop.kind:
        case ValueType.BOOLEAN:
            return not now
        case ValueType.INTEGER | ValueType.NUMBER:
            return (now or 0) + 1
        case ValueType.LIST:
            return examples.value(prop, name) if not now else [*now, *examples.value(prop, name)]
        case ValueType.MAP if prop.fields is None:
            return {**(now or {}), "changed": "yes"}
        case _:
            fresh = examples.value(prop, name)
            return fresh if fresh != now else f"{fresh}-2"


def given(name: str) -> dict[str, Any]:
    return examples.properties(types()[name])


def shown(kind: ResourceType) -> Iterator[tuple[str, Property]]:
    """Properties that templates should use."""
    return (
        (name, each)
        for name, each in kind.properties.items()
        if not each.hidden and name not in kind.deprecated_properties and each.implemented and not _settled(each)
    )


def _settled(prop: Property) -> bool:
    """There is one value that it may have."""
    return any(len(each.wire.get("allowed_values", "..")) == 1 for each in prop.constraints)


def fits(kind: ResourceType, values: Mapping[str, Any]) -> bool:
    try:
        kind.check(values)
    except Rejected:
        return False
    return True


def changed(name: str) -> dict[str, Any]:
    """Its properties with another value for each that may change in place."""
    kind, values = types()[name], given(name)
    defaults = kind.complete(kind.check(values))
    for key, prop in shown(kind):
        if prop.update:
            new = CHANGED.get(name, {}).get(key, None)
            new = other(prop, key, defaults.get(key)) if new is None else new
            if new is not LEFT:
                values[key] = new
    return values


def fixed(name: str) -> list[str]:
    """Names of properties of which a change makes a new thing."""
    return [key for key, prop in shown(types()[name]) if not (prop.update or prop.immutable)]


def refixed(name: str) -> dict[str, Any]:
    """Its properties with another value for one that cannot change in place."""
    kind, values = types()[name], given(name)
    defaults = kind.complete(kind.check(values))
    for key in [FIXED[name]] if name in FIXED else fixed(name):
        attempt = {**values, key: other(kind.properties[key], key, defaults.get(key))}
        if fits(kind, attempt):
            return attempt
    raise AssertionError(f"no other value fits any of {fixed(name)}: add a row to FIXED")


# -- the life of one ---------------------------------------------------------------------------------------------------


def tell_handle(service: Service, stack_id: str) -> None:
    if service.state(stack_id).startswith("DELETE"):
        return
    handle = service.row(stack_id, "other")
    if handle.type == "OS::Heat::WaitConditionHandle":
        service.signal(stack_id, "other")
        return
    told = {"Status": "SUCCESS", "UniqueId": str(service.clock.time), "Data": "", "Reason": ""}
    service.put(service.seen(stack_id, "other")["url"], told if handle.type.startswith("AWS") else {})


def tell_deployment(service: Service, stack_id: str) -> None:
    """Also those of a group, which are in a stack of their own."""
    for each in service.kept("software_deployment"):
        if each.object["status"] == Status.IN_PROGRESS:
            service.signals.native(PROJECT, each.kind, each.id, {"deploy_status_code": 0})
    service.work()


SIGNALS: Mapping[str, Callable[[Service, str], None]] = {
    "wait_condition": tell_handle,
    "software_deployment": tell_deployment,
}
"""Kind that waits to be told something -> how it is told."""


class Life:
    """A stack with one resource `it` of a type."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.service = Service(cloud=lambda clock: Watched(clock.now))
        self.id = self.service.create(self.template(given(name)), files=examples.FILES)
        self.rest()

    def template(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return examples.resources(types()[self.name], properties, "it")

    def rest(self) -> None:
        """Let time pass; whatever waits for signals is given them."""
        kind = types()[self.name]
        tell = tell_deployment if isinstance(kind, SoftwareDeploymentGroup) else SIGNALS.get(kind.kind)
        while tell is not None and self.state.endswith("IN_PROGRESS"):
            self.service.live(1.0)
            tell(self.service, self.id)
        self.service.rest(PATIENCE_S)

    def update(self, properties: Mapping[str, Any]) -> list[str]:
        """Gives what the cloud was asked to do."""
        before = len(self.calls)
        self.service.update(self.id, self.template(properties), files=examples.FILES)
        self.rest()
        return self.calls[before:]

    @property
    def calls(self) -> list[str]:
        assert isinstance(self.service.cloud, Watched)
        return self.service.cloud.calls

    @property
    def state(self) -> str:
        return self.service.state(self.id)

    @property
    def handle(self) -> str:
        return str(self.service.row(self.id, "it").handle)

    @property
    def thing(self) -> dict[str, Any]:
        """What the cloud has."""
        return self.service.cloud.things(types()[self.name].kind)[self.handle]

    def lives(self) -> str:
        """It is there, and as it should be. Gives its handle."""
        states = {each for each in self.service.states(self.id).values() if not each.endswith("_COMPLETE")}
        reasons = {row.name: row.reason for row in self.service.rows(self.id)}
        assert (self.state.rpartition("_")[2], states) == ("COMPLETE", set()), reasons
        if self.name in OUTSIDE:
            assert self.thing
        return self.handle


UNTYPED = {("OS::Octavia::Pool", "listeners"), ("OS::Neutron::LBaaS::Pool", "listeners")}
"""Attributes that are lists though their schema says text."""
SHAPES: Mapping[ValueType, type | tuple[type, ...]] = {
    ValueType.STRING: (str, int, float, bool),
    ValueType.INTEGER: int,
    ValueType.NUMBER: (int, float),
    ValueType.BOOLEAN: bool,
    ValueType.MAP: dict,
    ValueType.LIST: list,
    ValueType.ANY: object,
}


def misshapen(life: Life) -> dict[str, Any]:
    """Attributes whose values are not of the type that their schema says."""
    kind, there = types()[life.name], thing(life.name, seen=life.thing, handle=life.handle)
    return {
        name: found
        for name, found in kind.all_attributes(there).items()
        if (life.name, name) not in UNTYPED
        and not (found is None or isinstance(found, SHAPES[kind.attributes[name].kind]))
    }


def unlike(life: Life, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the thing that are not as these properties ask for; a cloud may add to a map."""
    kind, there = types()[life.name], life.thing
    wanted = kind.spec(kind.complete(kind.check(properties)), there.get("name", ""))
    return {
        name: there.get(name)
        for name, each in wanted.items()
        if name not in OWN and not (name in there and equal(each, there[name]))
    }


@pytest.mark.parametrize("name", LIVING)
def test_it_is_made_and_left_alone_and_changed_and_removed(name: str) -> None:
    life = Life(name)
    kind = types()[name]
    handle = life.lives()
    if name in OUTSIDE:
        assert misshapen(life) == {}
    assert life.update(given(name)) == []
    assert (life.lives() == handle) is not kind.renewed
    handle, wanted = life.handle, changed(name)
    calls = life.update(wanted)
    assert (life.lives() == handle) is not kind.renewed
    if name in OUTSIDE:
        assert calls == ([f"update {kind.kind}"] if wanted != given(name) else [])
        assert unlike(life, wanted) == {}
    life.service.delete(life.id)
    life.rest()
    assert life.state == "DELETE_COMPLETE"
    assert life.service.rows(life.id) == []
    assert life.service.cloud.things() == {}


@pytest.mark.parametrize("name", [name for name in LIVING if fixed(name)])
def test_a_change_of_what_is_fixed_replaces_it(name: str) -> None:
    life = Life(name)
    before = life.lives()
    life.update(refixed(name))
    assert life.lives() != before
    assert len([row for row in life.service.rows(life.id) if row.name == "it"]) == 1
    if name in OUTSIDE:
        assert before not in life.service.cloud.things()
        assert len(life.service.cloud.things(types()[name].kind)) == 1


# -- what holds for each type ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIVING)
def test_each_property_alone_changes_as_the_schema_says(name: str) -> None:
    kind, values = types()[name], given(name)
    old = kind.complete(kind.check(values))
    all_changed = changed(name)
    for key, prop in shown(kind):
        new = {**values, key: all_changed.get(key)} if prop.update else {**values, key: other(prop, key, old.get(key))}
        if prop.immutable or new[key] is None or not fits(kind, new):
            continue
        after = kind.complete(kind.check(new))
        differing = frozenset(each for each in after if after[each] != old.get(each))
        if differing and not (prop.update and CHANGED.get(name, {}).get(key) is LEFT):
            assert bool(kind.replacement_reason(old, after, differing)) is not prop.update, key


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_drifts_from_what_was_asked_for(name: str) -> None:
    kind = types()[name]
    values = kind.complete(kind.check(changed(name)))
    look = Observation(Presence.PRESENT, "h-1", kind.spec(values, "stack-it-abc"), seen_at=100.0)
    assert kind.drift(Thing("abcdefghijkl", "it", "stack-it-abc", values, look, "h-1")) == ()


@pytest.mark.parametrize("name", LIVING)
def test_what_is_not_known_yet_is_no_error(name: str) -> None:
    kind = types()[name]
    kind.check(dict.fromkeys(given(name), UNKNOWN))


@pytest.mark.parametrize("name", LIVING)
def test_what_it_is_referred_by_is_told(name: str) -> None:
    """The reference documentation says it in the words of the method's docstring."""
    assert type_pages.referred(types()[name])


@pytest.mark.parametrize("name", RETIRED)
def test_a_retired_type_says_what_to_use_instead(name: str) -> None:
    kind = resource_type(name)
    assert kind.support.hidden
    with pytest.raises(Rejected, match="has been retired") as refused:
        kind.check({"anything": 1}, ("resources", "old", "properties"))
    assert kind.support.message in refused.value.detail
