"""Random templates for the ring: small graphs of several types, and changes of them."""

import copy
import random
from typing import Any

TYPES = (
    "OS::Heat::TestResource",
    "OS::Nova::Server",
    "OS::Cinder::Volume",
    "OS::Heat::RandomString",
    "OS::Neutron::Net",
)


def grow(rng: random.Random) -> dict[str, Any]:
    """A new template of 1 to 6 resources that may require earlier ones."""
    resources: dict[str, Any] = {}
    for number in range(rng.randint(1, 6)):
        resources[f"r{number}"] = _resource(rng, sorted(resources))
    return {"heat_template_version": "2018-08-31", "resources": resources}


def mutate(rng: random.Random, template: dict[str, Any]) -> dict[str, Any]:
    """The template after one change: a resource added, removed, changed, or nothing at all."""
    changed = copy.deepcopy(template)
    resources = changed["resources"]
    draw = rng.random()
    if draw < 0.1:
        return changed
    if draw < 0.4 or not resources:
        name = f"r{rng.randint(0, 8)}"
        earlier = sorted(other for other in resources if other < name)
        resources[name] = _resource(rng, earlier)
    elif draw < 0.6:
        gone = rng.choice(sorted(resources))
        resources.pop(gone)
        for other in resources.values():
            _forget(other, gone)
    else:
        _change(rng, resources[rng.choice(sorted(resources))])
    return changed


def _resource(rng: random.Random, earlier: list[str]) -> dict[str, Any]:
    if earlier and rng.random() < 0.1:
        return _group(rng, earlier)
    kind = rng.choice(TYPES)
    resource: dict[str, Any] = {"type": kind, "properties": _properties(rng, kind, earlier)}
    if earlier and rng.random() < 0.4:
        resource["depends_on"] = sorted({rng.choice(earlier), rng.choice(earlier)})
    if rng.random() < 0.05:
        resource["deletion_policy"] = "Retain"
    return resource


def _group(rng: random.Random, earlier: list[str]) -> dict[str, Any]:
    member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "f", "name": "m%index%"}}
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": rng.randint(0, 3), "resource_def": member},
        "depends_on": [rng.choice(earlier)],
    }


def _properties(rng: random.Random, kind: str, earlier: list[str]) -> dict[str, Any]:
    if kind == "OS::Heat::TestResource":
        properties: dict[str, Any] = {"value": str(rng.randint(0, 3))}
        if earlier and rng.random() < 0.5:
            properties["value"] = {"get_resource": rng.choice(earlier)}
        if rng.random() < 0.08:
            properties["fail"] = True
        if rng.random() < 0.2:
            properties["wait_secs"] = rng.choice((1, 5))
        return properties
    if kind == "OS::Nova::Server":
        return {"image": "i", "flavor": rng.choice(("small", "large")), "metadata": {"v": str(rng.randint(0, 3))}}
    if kind == "OS::Cinder::Volume":
        return {"size": 1, "description": str(rng.randint(0, 3))}
    if kind == "OS::Heat::RandomString":
        return {"length": rng.randint(4, 8)}
    return {"name": f"net{rng.randint(0, 3)}"}


def _change(rng: random.Random, resource: dict[str, Any]) -> None:
    properties = resource["properties"]
    if resource["type"] == "OS::Heat::ResourceGroup":
        properties["count"] = rng.randint(0, 3)
    elif rng.random() < 0.3:
        resource["type"] = rng.choice(TYPES)
        resource["properties"] = _properties(rng, resource["type"], [])
    elif resource["type"] == "OS::Heat::TestResource" and rng.random() < 0.3:
        properties["update_replace"] = True
        properties["value"] = str(rng.randint(4, 9))
    else:
        resource["properties"] = _properties(rng, resource["type"], [])


def _forget(resource: dict[str, Any], name: str) -> None:
    if name in resource.get("depends_on", []):
        resource["depends_on"] = [other for other in resource["depends_on"] if other != name]
    properties = resource["properties"]
    if properties.get("value") == {"get_resource": name}:
        properties["value"] = "alone"
