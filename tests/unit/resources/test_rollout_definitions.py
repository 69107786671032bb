"""What templates may say about rollouts of a definition: refusals name the place and the way out."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.model.rollout import AppliesTo
from homeostat.resources.families.resource_groups import Membership
from homeostat.resources.nested import POLICY
from homeostat.resources.registry import resource_type

MEMBER = {"type": "OS::Heat::TestResource"}
TYPES: dict[str, dict[str, Any]] = {
    "OS::Heat::ResourceGroup": {"resource_def": MEMBER, "metadata_update_pattern": "canary"},
    "OS::Heat::AutoScalingGroup": {
        "resource": MEMBER,
        "max_size": 2,
        "min_size": 1,
        "metadata_update_pattern": "canary",
    },
    "OS::Heat::InstanceGroup": {
        "AvailabilityZones": ["nova"],
        "LaunchConfigurationName": "l",
        "Size": 1,
        "MetadataUpdatePattern": "canary",
    },
    "AWS::AutoScaling::AutoScalingGroup": {
        "AvailabilityZones": ["nova"],
        "LaunchConfigurationName": "l",
        "MaxSize": 2,
        "MinSize": 1,
        "MetadataUpdatePattern": "canary",
    },
}
BATCHES = {
    "OS::Heat::ResourceGroup": "rolling_update",
    "OS::Heat::InstanceGroup": "RollingUpdate",
    "AWS::AutoScaling::AutoScalingGroup": "AutoScalingRollingUpdate",
}


def checked(name: str, policy: dict[str, Any], **changed: Any) -> tuple[Membership, dict[str, Any]]:
    kind = resource_type(name)
    assert isinstance(kind, Membership)
    values = kind.check({**TYPES[name], **changed, POLICY: policy}, ("resources", "g", "properties"))
    return kind, kind.complete(values)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wanted", list(AppliesTo))
def test_groups_say_what_their_members_get_step_by_step(name: str, wanted: AppliesTo) -> None:
    kind, values = checked(name, {"rollout": {"applies_to": str(wanted)}})
    assert kind.rollout_settings(values).applies_to == wanted
    assert kind.rolls_out(values, AppliesTo.METADATA) == (wanted in (AppliesTo.METADATA, AppliesTo.BOTH))
    assert kind.rolls_out(values, AppliesTo.DEFINITION) == (wanted in (AppliesTo.DEFINITION, AppliesTo.BOTH))


@pytest.mark.parametrize("name", TYPES)
def test_by_default_it_is_metadata_alone(name: str) -> None:
    kind, values = checked(name, {"rollout": {"bake_time": 1}})
    assert kind.rolls_out(values, AppliesTo.METADATA)
    assert not kind.rolls_out(values, AppliesTo.DEFINITION)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("pattern", ["immediate", None])
def test_a_definition_needs_a_pattern_with_steps(name: str, pattern: str | None) -> None:
    word = next(key for key in TYPES[name] if key.lower().replace("_", "") == "metadataupdatepattern")
    with pytest.raises(Rejected, match=f"definition needs steps: set {word} to rolling or canary") as refused:
        checked(name, {"rollout": {"applies_to": "definition"}}, **{word: pattern})
    assert "rollout.applies_to" in str(refused.value)


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("wanted", ["definition", "both"])
def test_batches_beside_it_are_refused(name: str, wanted: str) -> None:
    policy = {"rollout": {"applies_to": wanted}, BATCHES[name]: {}}
    with pytest.raises(Rejected, match=f"leave {BATCHES[name]} out to have the steps and gates of the rollout"):
        checked(name, policy)
    checked(name, {"rollout": {"applies_to": "metadata"}, BATCHES[name]: {}})


def test_batches_that_are_a_property_are_refused_too() -> None:
    name, batches = "OS::Heat::AutoScalingGroup", {"max_batch_size": 2}
    with pytest.raises(Rejected, match="leave rolling_updates out"):
        checked(name, {"rollout": {"applies_to": "both"}}, rolling_updates=batches)
    checked(name, {"rollout": {}}, rolling_updates=batches)


def test_a_chain_has_no_steps() -> None:
    kind = resource_type("OS::Heat::ResourceChain")
    policy = {"rollout": {"applies_to": "definition"}}
    with pytest.raises(Rejected, match="the members of a chain are changed one after the other: use metadata"):
        kind.check({"resources": ["t"], "metadata_update_pattern": "canary", POLICY: policy}, ())


def test_another_word_is_refused() -> None:
    with pytest.raises(Rejected, match="applies_to"):
        checked("OS::Heat::ResourceGroup", {"rollout": {"applies_to": "image"}})
