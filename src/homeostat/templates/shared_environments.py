"""Shared environments: settings of the operator for all stacks, in environment files of the service. Pure.

Only the sections `resource_registry` and `parameter_defaults` are allowed. The templates named there are read as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.templates.environments import SHARED
from homeostat.templates.parser import parse_environment
from homeostat.templates.registry import check_registry, without_nulls

SECTIONS = ("resource_registry", "parameter_defaults")
"""Allowed sections of a shared environment."""


@dataclass(frozen=True, slots=True)
class SharedEnvironment:
    """The merged environments of all files; later files win.

    Attributes:
        files: Texts of the templates named in the registry, by name.
    """

    resource_registry: Mapping[str, Any] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def section(self) -> dict[str, Any]:
        """Return the section stored with the environment of a revision; {} if there is nothing to share."""
        content = {name: dict(getattr(self, name)) for name in SECTIONS if getattr(self, name)}
        return {SHARED: content} if content else {}


def shared_of_texts(texts: Mapping[str, str]) -> SharedEnvironment:
    """Merge environments given as texts; the templates named in them are not read yet.

    Args:
        texts: Environments by name, in the order of merging.

    Raises:
        Rejected: A text is wrong.
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
