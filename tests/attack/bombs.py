"""Small templates that would be too much for any machine, by what they grow with."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = "2021-04-16"


@dataclass(frozen=True, slots=True)
class Bomb:
    """One request to create a stack. refused — at the door, with this in the message; otherwise the stack is accepted,
    and fails or is made within bounds; files, environment — of the request."""

    name: str
    template: Any
    refused: str = ""
    files: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def more(self) -> dict[str, Any]:
        """The request, besides name and template."""
        return {"files": self.files, "environment": self.environment}


def template(resources: Any, **sections: Any) -> dict[str, Any]:
    return {"heat_template_version": VERSION, "resources": resources, **sections}


def value(content: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": content, **properties}}


def of(name: str) -> dict[str, Any]:
    return {"get_attr": [name, "value"]}


def growing(more: Callable[[Any], Any], first: Any, length: int = 40, **properties: Any) -> dict[str, Any]:
    """Values each of which is made from the one before."""
    found = {"v0": value(first, **properties)}
    for number in range(1, length):
        found[f"v{number}"] = value(more(of(f"v{number - 1}")), **properties)
    return found


def _made_by_functions() -> dict[str, dict[str, Any]]:
    """Values that grow from resource to resource."""
    shouting = growing(lambda one: {"list_join": ["", [one, one]]}, "\U0001f4a5")
    return {
        "maps": growing(lambda one: {"a": one, "b": one}, {"a": 1}, type="json"),
        "lists": growing(lambda one: [one, one], ["text"]),
        "all attributes": growing(lambda one: [one, one], ["text"]) | {"all": value([{"get_attr": ["v39"]}] * 2)},
        "list_concat": growing(lambda one: {"list_concat": [one, one]}, ["text"]),
        "list_join": growing(lambda one: {"list_join": ["", [one, one]]}, "text"),
        "list_join as JSON": growing(lambda one: {"list_join": ["", [one, [one]]]}, ['"\\']),
        "str_replace": growing(lambda one: {"str_replace": {"template": "xx", "params": {"x": one}}}, "text"),
        "str_replace as JSON": growing(lambda one: {"str_replace": {"template": "xx", "params": {"x": [one]}}}, "\\"),
        "repeat": growing(lambda one: {"repeat": {"template": ["x", "x", "x"], "for_each": {"x": one}}}, ["t"]),
        "repeat squared": growing(
            lambda one: {"repeat": {"template": "xy", "for_each": {"x": one, "y": one}}}, ["a", "b"]
        ),
        "map_merge": growing(lambda one: {"map_merge": [{"a": one}, {"b": one}]}, {"a": 1}),
        "map_replace": growing(lambda one: {"map_replace": [{"a": 1, "b": 2}, {"values": {"1": one, "2": one}}]}, {}),
        "yaql": growing(lambda one: {"yaql": {"expression": "[$.data, $.data]", "data": one}}, ["text"]),
        "yaql text": growing(lambda one: {"yaql": {"expression": "$.data * 50", "data": one}}, "text"),
        "make_url": growing(
            lambda one: {"make_url": {"scheme": "http", "host": "h", "path": one, "query": {"a": one}}}, "/"
        ),
        "levels": growing(lambda one: [one], ["text"], 400),
        "emoji": shouting,
        "text that is JSON": growing(lambda one: {"list_join": [",", [one, one]]}, "[]", 21)
        | {"read": value({"list_join": ["", ["[", of("v20"), "]"]]}, type="json")},
    }


def _made_by_resources() -> dict[str, dict[str, Any]]:
    """What grows in configs, servers, groups and nested stacks."""
    nested = {"s0": {"type": "twice.yaml", "properties": {"given": ["text"]}}}
    for number in range(1, 40):
        given = {"get_attr": [f"s{number - 1}", "twice"]}
        nested[f"s{number}"] = {"type": "twice.yaml", "properties": {"given": given}}
    configs: dict[str, Any] = {"c0": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "text " * 10}}}
    for number in range(1, 40):
        before = {"get_attr": [f"c{number - 1}", "config"]}
        properties = {"config": {"list_join": ["", [before, before]]}}
        configs[f"c{number}"] = {"type": "OS::Heat::SoftwareConfig", "properties": properties}
    servers = growing(lambda one: {"list_join": ["", [one, one]]}, "text", 22)
    servers["server"] = {
        "type": "OS::Nova::Server",
        "properties": {
            "image": "i",
            "flavor": "f",
            "user_data": {"list_join": ["", [of("v21")] * 50]},
            "metadata": {f"m{number}": of("v21") for number in range(50)},
        },
    }
    wide = growing(lambda one: [one, one], ["text " * 10], 15)
    wide |= {f"w{number}": value([of("v14")]) for number in range(300)}
    described = growing(lambda one: [one, one], ["text " * 10], 15)
    described |= {f"m{number}": {"type": "OS::Heat::Value", "properties": {"value": 1}} for number in range(300)}
    for number in range(300):
        described[f"m{number}"]["metadata"] = {"all": of("v14")}
    grouped = growing(lambda one: [one, one], ["text " * 10], 15)
    grouped["group"] = group(1000, value(of("v14")))
    listed = growing(lambda one: [one, one], ["text " * 10], 14)
    listed["group"] = group(1000, {"type": "holder.yaml", "properties": {"given": of("v13")}})
    listed["reader"] = value({"get_attr": ["group", "kept"]})
    return {
        "configs": configs,
        "user data and metadata of a server": servers,
        "many that are heavy": wide,
        "many with heavy metadata": described,
        "a group of heavy members": grouped,
        "outputs of nested stacks": nested,
        "what nested stacks of a group tell": listed,
    }


def group(count: Any, member: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": member, **properties}}


NAME = {"type": "OS::Heat::RandomString"}


def _read() -> list[Bomb]:
    """What grows while the template is read."""
    read = {"get_param": "big"}
    big = {"big": {"type": "string", "default": "x" * 100_000}}
    tree = {"tree": {"type": "json", "default": {str(number): ["text"] * 10 for number in range(500)}}}
    laughs = ["heat_template_version: 2021-04-16", "x0: &x0 [text, text]"]
    laughs += [f"x{number}: &x{number} [{', '.join([f'*x{number - 1}'] * 9)}]" for number in range(1, 12)]
    return [
        Bomb(
            "a parameter often",
            template({f"v{n}": value([read] * 20) for n in range(100)}, parameters=big),
            "make more",
        ),
        Bomb(
            "a map of parameters often",
            template({f"v{n}": value([{"get_param": "tree"}] * 40) for n in range(100)}, parameters=tree),
            "make more",
        ),
        Bomb("a text joined", template({"v": value({"list_join": ["", [read] * 1000]})}, parameters=big), "more than"),
        Bomb(
            "a deep value",
            '{"heat_template_version": "2021-04-16", "resources": ' + '{"a":' * 5000 + "1" + "}" * 5001,
            "e",
        ),
        Bomb("aliases of aliases", "\n".join(laughs), "e"),
        Bomb("a huge name", template({"n" * 400_000: NAME}), "400000 characters"),
    ]


def _counted() -> list[Bomb]:
    """What can be counted before anything is made."""
    scaling = {"min_size": 10**9, "max_size": 10**9, "resource": NAME}
    instances = {"LaunchConfigurationName": {"get_resource": "launch"}, "AvailabilityZones": ["nova"]}
    launch = {
        "type": "AWS::AutoScaling::LaunchConfiguration",
        "properties": {"ImageId": "i", "InstanceType": "f"},
    }
    sizes = {"MinSize": 10**9, "MaxSize": 10**9}
    return [
        Bomb("a huge count", template({"group": group(10**12, NAME)}), RESOURCES),
        Bomb(
            "a count of many digits",
            '{"heat_template_version": "2021-04-16", "resources": {"group": {"type": '
            '"OS::Heat::ResourceGroup", "properties": {"resource_def": {"type": "OS::Heat::None"}, "count": 1'
            + "0" * 4000
            + "}}}}",
            "e",
        ),
        Bomb("groups in groups", template({"group": group(1000, {"type": "l1.yaml"})}), RESOURCES, LEVELS),
        Bomb(
            "a chain",
            template(
                {
                    "chain": {
                        "type": "OS::Heat::ResourceChain",
                        "properties": {"resources": ["l2.yaml"] * 1000, "concurrent": True},
                    }
                }
            ),
            RESOURCES,
            LEVELS,
        ),
        Bomb(
            "a group that scales",
            template({"group": {"type": "OS::Heat::AutoScalingGroup", "properties": scaling}}),
            RESOURCES,
        ),
        Bomb(
            "an AWS group that scales",
            template(
                {
                    "launch": launch,
                    "group": {"type": "AWS::AutoScaling::AutoScalingGroup", "properties": instances | sizes},
                }
            ),
            RESOURCES,
        ),
        Bomb(
            "an AWS group",
            template(
                {
                    "launch": launch,
                    "group": {"type": "OS::Heat::InstanceGroup", "properties": instances | {"Size": 10**9}},
                }
            ),
            RESOURCES,
        ),
    ]


RESOURCES = "resources"
"""Word of the refusal of too many."""
LEVELS = {
    "l1.yaml": json.dumps(template({"group": group(1000, {"type": "l2.yaml"})})),
    "l2.yaml": json.dumps(template({"group": group(1000, NAME)})),
}


def _counted_later() -> list[Bomb]:
    """What cannot be counted before it runs."""
    later = {"n": value(10**9), "group": group(of("n"), NAME)}
    return [
        Bomb("a count that comes later", template(later)),
        Bomb(
            "a count that comes later in a nested stack",
            template({"n": value(10**9), "nested": {"type": "counted.yaml", "properties": {"given": of("n")}}}),
            files=FILES,
        ),
        Bomb(
            "groups in groups that come later",
            template(
                {"n": value(1100), "group": group(of("n"), {"type": "counted.yaml", "properties": {"given": of("n")}})}
            ),
            files=FILES,
        ),
        Bomb(
            "a few groups in a group that come later",
            template(
                {
                    "n": value(30),
                    "m": value(100_000),
                    "group": group(of("n"), {"type": "counted.yaml", "properties": {"given": of("m")}}),
                }
            ),
            files=FILES,
        ),
        Bomb(
            "groups in groups that cannot be counted before",
            template(
                {
                    "n": value(30),
                    "m": value(100_000),
                    "group": group(of("n"), {"type": "surprising.yaml", "properties": {"given": of("m")}}),
                }
            ),
            files=FILES,
        ),
    ]


FILES = {
    name: json.dumps(template({}, parameters={"given": {"type": "json"}}, outputs=outputs))
    for name, outputs in {
        "twice.yaml": {"twice": {"value": [{"get_param": "given"}, {"get_param": "given"}]}},
        "holder.yaml": {"kept": {"value": {"get_param": "given"}}},
    }.items()
}
FILES["counted.yaml"] = json.dumps(
    template({"group": group({"get_param": "given"}, NAME)}, parameters={"given": {"type": "number"}})
)
FILES["surprising.yaml"] = json.dumps(
    template(
        {"n": value({"get_param": "given"}), "group": group(of("n"), NAME)}, parameters={"given": {"type": "number"}}
    )
)
RUN_TIME = [
    Bomb(name, template(resources), files=FILES)
    for name, resources in (_made_by_functions() | _made_by_resources()).items()
]
AT_THE_DOOR = [*_read(), *_counted()]
LATER = _counted_later()
ENDLESS = Bomb("a group that takes hours", template({"group": group(500_000, NAME)}))
"""It is accepted, since a stack may be so large."""
