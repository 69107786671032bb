"""Pauses between the batches of groups of deployments."""

from homeostat.resources.families.deployment_groups import PAUSE
from tests.component.running import Service
from tests.component.test_deployments import A, B, fleet, reached, signal_done


def test_a_group_pauses_between_its_batches() -> None:
    service = Service()
    batches = {"max_batch_size": 1, "pause_time": 30}
    policy = {"batch_create": batches, "rolling_update": batches}
    resources = fleet({"a": A, "b": B}, policy)
    resources["read"] = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["fleet", "said"]}},
    }
    stack_id = service.create(resources)

    def second_waits_for_the_pause() -> None:
        assert reached(service) == {A}
        signal_done(service, A, "one")
        service.live(25)
        assert reached(service) == set()
        service.live(10)
        assert reached(service) == {B}
        signal_done(service, B, "two")
        service.rest()

    second_waits_for_the_pause()
    assert service.row(stack_id, "read").properties["value"] == {"a": "one", "b": "two"}, "no pause is among them"
    resources["fleet"]["properties"]["input_values"] = {"word": "new"}
    service.update(stack_id, resources)
    second_waits_for_the_pause()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    pauses = [name for name in service.states(service.child().id) if name.startswith(PAUSE)]
    assert len(pauses) == 1, "the one of before is gone"
