"""What an operator gives all stacks: environments in files of the service (environment.md section 3). Pure.

Of them hold sections `resource_registry` and `parameter_defaults`; templates that they name are texts beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.environments import SHARED
from homeostat.templates.parser import parse_environment
from homeostat.templates.registry import check_registry, without_nulls

SECTIONS = ("resource_registry", "parameter_defaults")


@dataclass(frozen=True, slots=True)
class SharedEnvironment:
    """resource_registry, parameter_defaults — of all files, later ones winning; files — texts of the templates."""

    resource_registry: Mapping[str, Any] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def section(self) -> dict[str, Any]:
        """As it is stored with the environment of a revision; empty where there is nothing."""
        content = {name: dict(getattr(self, name)) for name in SECTIONS if getattr(self, name)}
        return {SHARED: content} if content else {}


def shared_of_texts(texts: Mapping[str, str]) -> SharedEnvironment:
    """Of environments as texts by name, in their order; the templates that they name are still to be read.

    Fails: Rejected naming the text.
    """
    registry: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, text in texts.items():
        environment = parse_environment(text)
        others = sorted(environment.keys() - set(SECTIONS))
        if others:
            message = f"{name}: only {' and '.join(SECTIONS)} hold for all stacks, not {', '.join(others)}"
            raise Rejected("HTTPBadRequest", message)
        section = environment.get("resource_registry", {})
        check_registry(section)
        registry = without_nulls({**registry, **section})
        defaults |= environment.get("parameter_defaults", {})
    return SharedEnvironment(registry, defaults)
