"""What the tests of templates share: a stack to compile for, short cuts, and a scope of resources that exist."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.desired import Identity
from homeostat.templates import Compiled, compile_template, evaluate, traverse

IDENTITY = Identity("5b9e8a0c-0000-4000-8000-000000000001", "shop", "project-a")
LATEST = "2021-04-16"


def template(version: str = LATEST, **sections: Any) -> dict[str, Any]:
    return {"heat_template_version": version, **sections}


def compiled(document: Any, **options: Any) -> Compiled:
    return compile_template(document, identity=IDENTITY, **options)


def resource(properties: Any = None, **keys: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::TestResource", **({} if properties is None else {"properties": properties}), **keys}


class Built:
    """Scope in which each resource has the reference `<name>-id` and the attributes given."""

    def __init__(self, attributes: Mapping[str, Any] | None = None, unknown: Any = None) -> None:
        self.values = {} if attributes is None else attributes
        self.unknown = unknown
        self.asked: list[tuple[str, str, list[str | int]]] = []

    def reference(self, resource: str) -> Any:
        return f"{resource}-id" if self.unknown is None else self.unknown

    def attribute(self, resource: str, name: str, path: Sequence[str | int]) -> Any:
        self.asked.append((resource, name, list(path)))
        return traverse(self.values.get(name), path) if self.unknown is None else self.unknown

    def attributes(self, resource: str) -> Any:
        return dict(self.values) if self.unknown is None else self.unknown


def value_of(snippet: Any, version: str = LATEST, scope: Built | None = None, **options: Any) -> Any:
    """Value of a snippet in a template with parameters and one other resource, `other`."""
    sections = {
        "parameters": {
            "name": {"type": "string", "default": "web"},
            "count": {"type": "number", "default": 3},
            "zones": {"type": "comma_delimited_list", "default": "a,b,c"},
            "tree": {"type": "json", "default": {"a": [1, {"b": "deep"}], "n": None}},
            "flag": {"type": "boolean", "default": True},
        },
        "resources": {"other": resource()},
        "outputs": {"it": {"value": snippet}},
    }
    options.setdefault("files", {"run.sh": "echo $name"})
    output = compiled(template(version, **sections), **options).outputs["it"]
    return evaluate(output.value, scope or Built({"ip": "10.0.0.5", "nets": {"lan": ["10.0.0.5"]}, "none": None}))
