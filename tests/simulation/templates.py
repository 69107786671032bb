"""Random templates for the ring: small graphs of several types, nested stacks and groups, and changes of them."""

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

from homeostat.services.pipeline.request import StackRequest

SIMPLE = (
    "OS::Heat::TestResource",
    "OS::Nova::Server",
    "OS::Cinder::Volume",
    "OS::Heat::RandomString",
    "OS::Neutron::Net",
)
WITH_DATA = ("OS::Nova::Server", "OS::Cinder::Volume")
"""Those that can be snapshotted."""

SERVER, VOLUME = WITH_DATA
ATTACHMENT = "OS::Cinder::VolumeAttachment"
GROUP = "OS::Heat::ResourceGroup"
INNER, OUTER = "inner.yaml", "outer.yaml"
"""Nested templates; the outer one holds an inner one."""

Resources = dict[str, Any]


@dataclass(slots=True)
class DesiredStack:
    """What a user wants a stack to be: its resources, and those of the nested templates."""

    resources: Resources
    nested: dict[str, Resources] = field(default_factory=dict)
    held: Resources = field(default_factory=dict)
    """What its environment says of single resources."""

    def request(self, **options: Any) -> StackRequest:
        files = {name: json.dumps(_nested(resources)) for name, resources in self.nested.items()}
        environment = {"resource_registry": {"resources": self.held}} if self.held else {}
        return StackRequest(_template(self.resources), files=files, environment=environment, **options)


def _template(resources: Resources) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _nested(resources: Resources) -> dict[str, Any]:
    """With a parameter that every part may read, and an output that reads the first part."""
    first = min(resources)
    outputs = {"told": {"value": {"get_resource": first}}}
    return {**_template(resources), "parameters": {"given": {"type": "string", "default": "d"}}, "outputs": outputs}


class TemplateMutator:
    """Grows templates and changes them. nested — whether nested stacks and groups are among them; careful —
    whether all else has data that is snapshotted when it goes; links — whether things are made of others, without which
    the cloud refuses them."""

    links = False

    def __init__(self, rng: random.Random, *, nested: bool, careful: bool = False) -> None:
        self._rng = rng
        self._careful = careful
        self._nested = nested

    def grow(self) -> DesiredStack:
        """1 to 6 resources that may require earlier ones."""
        desired = DesiredStack({}, {INNER: self._inner(), OUTER: self._outer()} if self._nested else {})
        for number in range(self._rng.randint(1, 6)):
            desired.resources[f"r{number}"] = self._resource(desired.resources, f"r{number}")
        return desired

    def mutate(self, desired: DesiredStack) -> DesiredStack:
        """After one change: a resource added, removed or changed, a nested template edited, or nothing at all."""
        changed = copy.deepcopy(desired)
        resources, rng = changed.resources, self._rng
        draw = rng.random()
        if draw < 0.1:
            return changed
        if draw < 0.2 and changed.nested:
            changed.nested |= rng.choice(({INNER: self._inner()}, {OUTER: self._outer()}))
        elif draw < 0.45 or not resources:
            name = f"r{rng.randint(0, 8)}"
            resources[name] = self._resource(resources, name)
        elif draw < 0.6:
            gone = rng.choice(sorted(resources))
            resources.pop(gone)
            for name in resources:
                resources[name] = _without(resources[name], gone)
        else:
            name = rng.choice(sorted(resources))
            self._change(resources, name)
        return changed

    # -- one resource ------------------------------------------------------------------------------------------------

    def _resource(self, resources: Resources, name: str) -> dict[str, Any]:
        rng = self._rng
        earlier = {other: each for other, each in resources.items() if other < name}
        draw = rng.random()
        if self._nested and draw < 0.15:
            resource = self._group()
        elif self._nested and draw < 0.25:
            resource = self._stack(earlier)
        else:
            resource = self._simple(earlier)
        if earlier and rng.random() < 0.4:
            resource["depends_on"] = sorted({rng.choice(sorted(earlier)), rng.choice(sorted(earlier))})
        if rng.random() < 0.06:
            resource["deletion_policy"] = "Retain"
        return resource

    def _simple(self, earlier: Resources) -> dict[str, Any]:
        kinds = {each["type"] for each in earlier.values()}
        if self.links and {SERVER, VOLUME} <= kinds and self._rng.random() < 0.5:
            return {"type": ATTACHMENT, "properties": self._properties(ATTACHMENT, earlier)}
        kind = self._rng.choice(WITH_DATA if self._careful else SIMPLE)
        policy = {"deletion_policy": "Snapshot"} if self._careful else {}
        return {"type": kind, "properties": self._properties(kind, earlier), **policy}

    def _properties(self, kind: str, earlier: Resources) -> dict[str, Any]:
        rng = self._rng
        number = str(rng.randint(0, 3))
        if kind == "OS::Heat::TestResource":
            return self._double(earlier)
        if kind == ATTACHMENT:
            return {"instance_uuid": self._one_of(SERVER, earlier), "volume_id": self._one_of(VOLUME, earlier)}
        if kind == "OS::Nova::Server":
            metadata = {"v": self._reading(earlier) if earlier and rng.random() < 0.3 else number}
            return {"image": "i", "flavor": rng.choice(("small", "large")), "metadata": metadata}
        if kind == "OS::Cinder::Volume":
            readable = [name for name, each in earlier.items() if each["type"] == "OS::Heat::TestResource"]
            if readable and rng.random() < 0.3:  # good as long as the value is a number above 0
                return {"size": {"get_attr": [rng.choice(sorted(readable)), "output"]}, "description": number}
            return {"size": rng.choice((1, 1, 1, 2)), "description": number}
        if kind == "OS::Heat::RandomString":
            return {"length": rng.randint(4, 8)}
        return {"name": f"net{number}"}

    def _one_of(self, kind: str, earlier: Resources) -> Any:
        """A reference to an earlier one of this type, or to nothing."""
        names = sorted(name for name, each in earlier.items() if each["type"] == kind)
        return {"get_resource": self._rng.choice(names)} if names else "1"

    def _double(self, earlier: Resources) -> dict[str, Any]:
        rng = self._rng
        properties: dict[str, Any] = {"value": rng.choice(("1", "1", "2", "3", "bad"))}
        if earlier and rng.random() < 0.4:
            properties["value"] = self._reading(earlier)
        if rng.random() < 0.08:
            properties["fail"] = True
        if rng.random() < 0.2:
            properties["wait_secs"] = rng.choice((1, 5, 5, 70))
        if rng.random() < 0.02:
            properties["wait_secs"] = -1
        return properties

    def _reading(self, earlier: Resources) -> dict[str, Any]:
        """A value taken from an earlier resource."""
        name = self._rng.choice(sorted(earlier))
        kind = earlier[name]["type"]
        if kind == GROUP and self._rng.random() < 0.5:
            return {"list_join": [",", {"get_attr": [name, "refs"]}]}
        if kind in (INNER, OUTER) and self._rng.random() < 0.5:
            return {"str_replace": {"template": "T", "params": {"T": {"get_attr": [name, "told"]}}}}
        return {"get_resource": name}

    def _change(self, resources: Resources, name: str) -> None:
        rng = self._rng
        resource = resources[name]
        earlier = {other: each for other, each in resources.items() if other < name}
        if rng.random() < 0.1:
            with_data = ("Snapshot",) if resource["type"] in WITH_DATA else ()
            resource["deletion_policy"] = rng.choice(("Retain", "Delete", *with_data))
        elif resource["type"] == GROUP:
            self._rescale(resource["properties"])
            if rng.random() < 0.2:
                resource["update_policy"] = self._policy()
        elif resource["type"] in (INNER, OUTER):
            resource["properties"] = {"given": str(rng.randint(0, 3))}
        elif rng.random() < 0.25:
            resource |= self._simple(earlier)
            if resource["type"] not in WITH_DATA and resource.get("deletion_policy") == "Snapshot":
                del resource["deletion_policy"]
        elif resource["type"] == "OS::Heat::TestResource" and rng.random() < 0.3:
            resource["properties"] |= {"update_replace": True, "value": str(rng.randint(4, 9))}
        else:
            resource["properties"] = self._properties(resource["type"], earlier)

    # -- nested ------------------------------------------------------------------------------------------------------

    def _inner(self) -> Resources:
        resources = {f"i{number}": self._simple({}) for number in range(self._rng.randint(1, 2))}
        for each in resources.values():
            if each["type"] == "OS::Heat::TestResource" and self._rng.random() < 0.5:
                each["properties"]["value"] = {"get_param": "given"}
        return resources

    def _outer(self) -> Resources:
        return {"o0": self._simple({}), "o1": {"type": INNER, "properties": {"given": {"get_param": "given"}}}}

    def _stack(self, earlier: Resources) -> dict[str, Any]:
        given = self._reading(earlier) if earlier and self._rng.random() < 0.3 else str(self._rng.randint(0, 3))
        return {"type": self._rng.choice((INNER, INNER, OUTER)), "properties": {"given": given}}

    def _group(self) -> dict[str, Any]:
        properties: dict[str, Any] = {"count": self._rng.randint(0, 4), "resource_def": self._member()}
        group: dict[str, Any] = {"type": GROUP, "properties": properties}
        if self._rng.random() < 0.3:
            group["update_policy"] = self._policy()
        return group

    def _policy(self) -> dict[str, Any]:
        """Members change, or are made, in batches."""
        rng = self._rng
        rolling = {"max_batch_size": rng.randint(1, 2), "min_in_service": rng.randint(0, 2)}
        batches = {"max_batch_size": rng.randint(1, 2), "pause_time": rng.choice((0, 3))}
        return rng.choice(({"rolling_update": rolling}, {"batch_create": batches}))

    def _member(self) -> dict[str, Any]:
        rng = self._rng
        draw = rng.random()
        if draw < 0.5:
            return {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f", "name": "m%index%"}}
        if draw < 0.7:
            return {"type": INNER, "properties": {"given": f"%index%-{rng.randint(0, 1)}"}}
        properties = {"value": f"%index%-{rng.randint(0, 2)}", "wait_secs": rng.choice((0, 0, 3))}
        return {"type": "OS::Heat::TestResource", "properties": properties}

    def _rescale(self, properties: dict[str, Any]) -> None:
        """Another count, other members, or some of them sent away by name, number or reference."""
        rng = self._rng
        draw = rng.random()
        if draw < 0.25:
            properties["resource_def"] = self._member()
        elif draw < 0.5:
            listed = [rng.choice(("0", "1", 2, f"server-{rng.randint(1, 20)}")) for _ in range(rng.randint(1, 2))]
            properties["removal_policies"] = [{"resource_list": listed}]
            properties["removal_policies_mode"] = rng.choice(("append", "append", "update"))
        else:
            properties["count"] = rng.randint(0, 4)


def _without(resource: dict[str, Any], name: str) -> dict[str, Any]:
    """The resource, reading nothing of the one of this name any more."""

    def replaced(tree: Any) -> Any:
        if isinstance(tree, dict):
            read = tree.get("get_resource") == name or (tree.get("get_attr") or [None])[0] == name
            return "1" if read else {key: replaced(value) for key, value in tree.items()}
        return [replaced(item) for item in tree] if isinstance(tree, list) else tree

    done: dict[str, Any] = replaced(resource)
    if name in done.get("depends_on", []):
        done["depends_on"] = [other for other in done["depends_on"] if other != name]
    return done
