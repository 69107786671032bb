"""Stacks of n resources in several shapes, each as it is created and with one member changed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from homeostat.services.pipeline.request import StackRequest

Template = dict[str, Any]
VERSION = "2018-08-31"
PER_STACK = 100
"""Resources of one nested stack."""


@dataclass(frozen=True, slots=True)
class Shape:
    """request(n) — the stack; changed(n) — the same with one of its resources changed; what — in words."""

    request: Callable[[int], StackRequest]
    changed: Callable[[int], StackRequest]
    what: str


def _of(resources: Template) -> StackRequest:
    return StackRequest({"heat_template_version": VERSION, "resources": resources})


def _one_changed(make: Callable[[int], Template]) -> Callable[[int], StackRequest]:
    def changed(n: int) -> StackRequest:
        return _of({**make(n), f"r{n - 1}": {"type": "OS::Heat::TestResource", "properties": {"value": "changed"}}})

    return changed


def _independent(n: int) -> Template:
    return {f"r{i}": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}} for i in range(n)}


def _chain(n: int) -> Template:
    resources: Template = {"r0": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}}
    for i in range(1, n):
        value = {"get_attr": [f"r{i - 1}", "output"]}
        resources[f"r{i}"] = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    return resources


def _clouded(n: int) -> Template:
    return {f"r{i}": {"type": "OS::Cinder::Volume", "properties": {"size": 1}} for i in range(n)}


def _group(count: int) -> StackRequest:
    one = {"type": "OS::Heat::TestResource", "properties": {"value": "%index%"}}
    return _of({"group": {"type": "OS::Heat::ResourceGroup", "properties": {"count": count, "resource_def": one}}})


def _nested(stacks: int) -> StackRequest:
    """A group of nested stacks, each of `PER_STACK` resources."""
    inner = f"heat_template_version: {VERSION}\nresources:\n" + "".join(
        f"  r{i}: {{type: OS::Heat::TestResource, properties: {{value: v}}}}\n" for i in range(PER_STACK)
    )
    outer = {"type": "OS::Heat::ResourceGroup", "properties": {"count": stacks, "resource_def": {"type": "one.yaml"}}}
    return replace(_of({"group": outer}), files={"one.yaml": inner})


def _tree(stacks: int) -> StackRequest:
    """Groups in stacks in a group: of any two nested stacks one is a group of two, and the other has that group."""
    inner = (
        f"heat_template_version: {VERSION}\nresources:\n  g:\n    type: OS::Heat::ResourceGroup\n    properties:\n"
        "      count: 2\n      resource_def: {type: OS::Heat::TestResource, properties: {value: v}}\n"
    )
    outer = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": stacks // 2, "resource_def": {"type": "g.yaml"}},
    }
    return replace(_of({"group": outer}), files={"g.yaml": inner})


SHAPES = {
    "independent": Shape(lambda n: _of(_independent(n)), _one_changed(_independent), "no-op resources of one template"),
    "chain": Shape(lambda n: _of(_chain(n)), _one_changed(_chain), "each reads an attribute of the one before"),
    "clouded": Shape(
        lambda n: _of(_clouded(n)), _one_changed(_clouded), "volumes: intents are stored before the cloud hears of them"
    ),
    "group": Shape(_group, lambda n: _group(n + 1), "members of one group; the change is one more member"),
    "nested": Shape(
        lambda n: _nested(n // PER_STACK),
        lambda n: _nested(n // PER_STACK + 1),
        f"a group of nested stacks of {PER_STACK} each; the change is one more of them",
    ),
    "tree": Shape(
        _tree, lambda n: _tree(n + 2), "as many nested stacks, on three levels; the change is one more of them"
    ),
}
