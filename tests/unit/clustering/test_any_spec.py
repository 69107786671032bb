"""Specs of any content: each is either refused as an error of the caller, or becomes something."""

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.unit.clustering.profile_cases import IDENTITY, TERMS, device, server, stack

from homeostat.clustering.decisions import choices, sizes
from homeostat.clustering.decisions.health_policy import HEALTH, health_policy, recover_data
from homeostat.clustering.decisions.policies import attach_problem, binding_data, check_policy
from homeostat.clustering.decisions.profiles import (
    SERVER_PROFILE,
    STACK_PROFILE,
    check_named_profile,
    check_profile,
    define,
)
from homeostat.clustering.decisions.specs import Spec
from homeostat.model.errors import Rejected
from homeostat.resources.registry import type_of
from homeostat.templates import compile_template

TEMPLATE = {"heat_template_version": "2018-08-31", "parameters": {"p": {"type": "json", "default": {}}}}
PROFILES = [
    server(
        networks=[
            {"network": "n", "floating_network": "e", "floating_ip": "1.2.3.4", "security_groups": ["s"]},
            {"port": "p", "vnic_type": "direct", "fixed_ip": None},
            {"network": "n", "subnet": "s", "fixed_ip": "10.0.0.1"},
        ],
        metadata={"a": "b", "c": "d"},
        personality=[{"path": "/a", "contents": "YQ=="}],
        scheduler_hints={"group": "g"},
        security_groups=["g"],
        context={"region_name": "r"},
        user_data="x",
        block_device_mapping_v2=[device(uuid="v", boot_index=0), device(source_type="blank")],
    ),
    server(networks=[{"network": "n"}], metadata={"a": {"b": 1}}, scheduler_hints={"x": ["y"]}),
    stack(
        template=TEMPLATE,
        parameters={"p": {"a": 1}},
        files={"f": "x"},
        environment={"parameters": {}, "parameter_defaults": {"p": {}}},
        timeout=3,
        context={},
    ),
    stack(template_url="http://x/y.yaml"),
]


def policy(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"senlin.policy.{name}", "version": "1.0", "properties": properties, "description": "d"}


POLICIES = [
    policy("scaling", event="CLUSTER_SCALE_IN", adjustment={"type": "EXACT_CAPACITY", "number": 2, "cooldown": 3}),
    policy("deletion", criteria="RANDOM", hooks={"type": "webhook", "params": {"url": "http://x"}, "timeout": 3}),
    policy("zone_placement", zones=[{"name": "a", "weight": 1}, {"name": "b"}]),
    policy("region_placement", regions=[{"name": "a", "cap": 1}, {"name": "b"}]),
    policy("affinity", servergroup={"name": "x", "policies": "affinity"}),
    policy("batch", min_in_service=1, max_batch_size=2, pause_time=3),
    policy(
        "loadbalance",
        pool={"subnet": "s", "session_persistence": {"type": "APP_COOKIE", "cookie_name": "c"}},
        vip={"subnet": "s", "protocol_port": 80},
        health_monitor={"type": "HTTP", "url_path": "/"},
    ),
    policy(
        "health",
        detection={
            "interval": 60,
            "quorum": 1,
            "detection_modes": [
                {
                    "type": "NODE_STATUS_POLL_URL",
                    "options": {"poll_url": "http://{nodeip}/", "poll_url_retry_limit": 3},
                },
                {"type": "LIFECYCLE_EVENTS"},
            ],
        },
        recovery={
            "actions": [
                {"name": "REBOOT", "params": {"type": "SOFT"}},
                {"name": "w", "type": "WEBHOOK", "params": {"url": "http://x", "headers": {"A": "b"}}},
                {"name": "m", "type": "MISTRAL_WORKFLOW", "params": {"x": ["{nodeid}"]}},
            ],
            "fencing": ["COMPUTE"],
            "max_unhealthy": "40%",
            "preserve": ["name"],
        },
    ),
    policy("health", detection={"type": "NODE_STATUS_POLLING", "options": {"interval": 60}}, recovery={"actions": []}),
]
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 10**30, 0.5, -1e308, "", "x", "1", "{", "{}", "[]", "null", "a\x00b", "\ud800",
    "http://[", "http://x", "%", "100%", "HARD", "REBUILD", "LIFECYCLE_EVENTS", [], [None], [[]], ["x"], [1, "x"], {},
    {"a": 1}, {"get_file": "x"}, {"get_param": "OS::stack_id"}, {"": None}, {"type": "LIFECYCLE_EVENTS"},
    "{{ node.name }}",
]  # fmt: skip


def changed(spec: Any, random: Random) -> Any:
    """Return a spec with one to three of its parts replaced, added or taken out."""
    result = copy.deepcopy(spec)
    for _ in range(random.randint(1, 3)):
        inner = result["properties"] if random.random() < 0.95 else result
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = random.choice(keys)
            below = inner[key]
            if isinstance(below, dict | list) and below and random.random() < 0.75:
                inner = below
                continue
            _change(inner, key, random)
            break
        if not isinstance(result.get("properties"), dict):
            break
    return result


def _change(inner: Any, key: Any, random: Random) -> None:
    way = random.random()
    if way < 0.6:
        inner[key] = copy.deepcopy(random.choice(ODD))
    elif way < 0.8:
        del inner[key]
    elif isinstance(inner, dict):
        inner[random.choice(["x", "name", "type", key])] = copy.deepcopy(random.choice(ODD))
    else:
        inner.append(copy.deepcopy(inner[key]))


def use_profile(checked: Spec) -> None:
    assert checked == check_named_profile("name", checked.sent)
    definition = define(checked, TERMS)
    template = {"heat_template_version": "2018-08-31", "resources": {"node": definition.resource}}
    sections = {name: each for name, each in definition.environment.items() if name != "parameters"}
    made = compile_template(template, identity=IDENTITY, files=definition.files, environment=sections)
    assert made.definitions["node"].static
    json.dumps([definition.resource, definition.files])
    type_of(definition.resource["type"])


def use_policy(checked: Spec) -> None:
    attach_problem(checked, SERVER_PROFILE, [])
    attach_problem(checked, STACK_PROFILE, [checked.full_name])
    binding_data(checked, {})
    name = checked.type.name.rpartition(".")[2]
    nodes = [choices.NodeFacts(str(number), created_at=float(number)) for number in range(9)]
    if checked.type is HEALTH:
        health = health_policy(checked)
        assert health.actions
        assert health.most_recovered(9) >= 0
        recover_data(checked)
    elif name == "scaling":
        rule = sizes.scaling_rule(checked)
        assert sizes.cooldown_left_s(rule, 1.0, 2.0) >= 0
        for current in (0, 9):
            # The policy may not fit this size; then it says so.
            with suppress(Rejected):
                assert sizes.scaled(sizes.Sizes(), current, rule.event, None, rule).sizes.desired >= 0
    elif name == "deletion":
        assert len(choices.victims(nodes, 3, choices.deletion_rule(checked).criteria, "s")) == 3
    elif name == "batch":
        assert [each for batch in choices.batches(nodes, choices.batch_rule(checked)) for each in batch] == nodes
    elif name.endswith("placement"):
        with suppress(Rejected):
            assert sum(choices.placed({"a": 1}, choices.places(checked), 3).values()) == 3


CASES = [(PROFILES, check_profile, use_profile), (POLICIES, check_policy, use_policy)]


@pytest.mark.parametrize(("specs", "check", "use"), CASES)
def test_specs_without_change_are_accepted(
    specs: list[Any], check: Callable[[Any], Spec], use: Callable[[Spec], None]
) -> None:
    for spec in specs:
        use(check(spec))


@pytest.mark.parametrize("start", range(0, 1500, 100))
@pytest.mark.parametrize(("specs", "check", "use"), CASES)
def test_any_spec_is_refused_or_used(
    specs: list[Any], check: Callable[[Any], Spec], use: Callable[[Spec], None], start: int
) -> None:
    accepted, refused = 0, []
    for seed in range(start, start + 100):
        random = Random(seed)
        spec = changed(random.choice(specs), random)
        before = copy.deepcopy(spec)
        try:
            checked = check(spec)
        except Rejected as error:
            refused.append(error.code)
        else:
            use(checked)
            accepted += 1
        assert spec == before, f"seed {seed}: the spec was changed"
    assert accepted
    assert refused
    assert set(refused) <= {400, 404}
